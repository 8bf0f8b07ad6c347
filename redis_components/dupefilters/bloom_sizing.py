"""Arithmetic of blocked Bloom filters: how large a layer has to be, and how often it errs. Pure; the layout is that of
`lua/lib/bloom.lua`.

A block's filter is an ordinary Bloom filter (Bloom 1970) of BLOCK_BITS for those entries that fall into it; their number is
Poisson distributed (Putze, Sanders, Singler 2007). Layers follow Almeida et al. 2007, but with other shares of the promised rate:
FIRST_SHARE for the first, where most crawls end, then 6 / (pi * i)**2 of the rest, which sums up to the whole for any number of
layers.
"""

from __future__ import annotations

import math
from functools import cache

BLOCK_BITS = 768
MOST_HASHES = 16
FIRST_SHARE = 0.7
LAYERS = 16
"""Plans that are made; further layers are as the last one."""


def block_rate(load: float, hashes: int) -> float:
    """Return the probability that a new item counts as known, where blocks have `load` entries on average and each sets `hashes`
    bits.
    """
    spread = 8 * math.sqrt(load) + 8
    first, last = max(0, int(load - spread)), int(load + spread)
    rate = 0.0
    for entries in range(first, last + 1):
        weight = math.exp(entries * math.log(load) - load - math.lgamma(entries + 1)) if load > 0 else float(entries == 0)
        rate += weight * (-math.expm1(hashes * entries * math.log1p(-1 / BLOCK_BITS))) ** hashes
    return rate


@cache
def _load_and_hashes(rate: float) -> tuple[float, int]:
    """Return the most entries per block with which a layer keeps `rate`, and the bits for each entry with which it does."""
    most = min(MOST_HASHES, max(2, math.ceil(-math.log2(rate))))
    loads = {hashes: _load(rate, hashes) for hashes in range(most // 2, most + 1)}
    enough = 0.97 * max(loads.values())  # fewer bits are faster, which is worth 3 percent of memory
    return next((load, hashes) for hashes, load in loads.items() if load >= enough)


def _load(rate: float, hashes: int) -> float:
    low, high = 0.01, 1000.0
    while high / low > 1.002:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if block_rate(middle, hashes) <= rate else (low, middle)
    return low


@cache
def layer_plans(false_positives: float, capacity: int) -> tuple[tuple[int, int, int], ...]:
    """Return (bits for each entry, blocks, entries) of each layer of a filter that promises a rate of `false_positives`."""
    plans = []
    for layer in range(LAYERS):
        share = (1 - FIRST_SHARE) * 6 / (math.pi * layer) ** 2 if layer else FIRST_SHARE
        load, hashes = _load_and_hashes(false_positives * share)
        entries = capacity * 2**layer
        plans.append((hashes, math.ceil(entries / load), entries))
    return tuple(plans)


def native_rate(false_positives: float, capacity: int, entries: int) -> float:
    """Return the rate of RedisBloom's scalable filter: each layer is twice as large as the one before and has half
    of its rate.
    """
    passed, layer_rate = 1.0, false_positives / 2
    while entries > 0:
        hashes = math.ceil(-math.log2(layer_rate))
        passed *= 1 - (1 - 0.5 ** min(1.0, entries / capacity)) ** hashes
        entries, capacity, layer_rate = entries - capacity, capacity * 2, layer_rate / 2
    return 1 - passed
