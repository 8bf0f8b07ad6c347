"""Kinds of dupefilters with their parameters, and a dupefilter in Redis from outside of the exchange: asking and emptying.

Arithmetic of blocked Bloom filters: how large a layer has to be, and how often it errs; the layout is `lua/lib/bloom.lua`'s. A
block's filter is an ordinary Bloom filter (Bloom 1970) of BLOCK_BITS for those entries that fall into it; their number is
Poisson distributed (Putze, Sanders, Singler 2007). Layers follow Almeida et al. 2007, but with other shares of the promised rate:
FIRST_SHARE for the first, where most crawls end, then 6 / (pi * i)**2 of the rest, which sums up to the whole for any number of
layers.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from hashlib import sha1
from typing import Any, ClassVar

import msgspec
import redis

from .errors import ConfigError
from .server.scripts import script

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


FEWEST_BITS, MOST_BITS = 64, 80
FEWEST_ENTRIES = 1000
SHORTEST_AGE_S = 1

_PARTS = struct.Struct(">Hq")
_ROOT = struct.Struct(">H")


def _entry(fingerprint: bytes, bits: int) -> bytes:
    # Bits of its SHA-1: a user's fingerprint may be any text, whose first bytes are those of many others.
    root, number = _PARTS.unpack_from(sha1(fingerprint, usedforsecurity=False).digest())
    return _ROOT.pack(root >> MOST_BITS - bits) + b"%d" % number


def _checked(setting: str, value: float, lowest: float, highest: float) -> None:
    if not lowest <= value <= highest:
        raise ConfigError(f"{setting} = {value} is out of range: from {lowest:g} to {highest:g}")


@dataclass(frozen=True, kw_only=True)
class Filter:
    """One kind of dupefilter with its parameters."""

    kind: ClassVar[str]
    forgets: ClassVar[bool] = False
    """True if entries expire: then no process may answer from what it remembers."""

    @property
    def form(self) -> str:
        """The content of the base key."""
        return self.kind

    def options(self) -> dict[str, Any] | None:
        """Return the options for `lua/lib/filter.lua`; None where it is not used."""
        return None

    def entry(self, fingerprint: bytes) -> bytes:
        """Return the entry for a fingerprint, in the form that the scripts take."""
        return fingerprint


@dataclass(frozen=True, kw_only=True)
class PlainSet(Filter):
    """Fingerprints as they are, in the set at the base key, where other tools can read them."""

    kind: ClassVar[str] = "set"


@dataclass(frozen=True, kw_only=True)
class Exact(Filter):
    """`bits` of each fingerprint. Two requests are taken for one with probability 2**-bits for each pair of them.

    64 of the bits are stored as an integer of 8 bytes; the others choose among 2**(bits - 64) buckets at the start.
    """

    kind: ClassVar[str] = "exact"
    bits: int = 72

    def __post_init__(self) -> None:
        _checked("DUPEFILTER_BITS", self.bits, FEWEST_BITS, MOST_BITS)

    @property
    def form(self) -> str:
        """The content of the base key."""
        return f"{self.kind} bits={self.bits}"

    def options(self) -> dict[str, Any] | None:
        """Return the options for `lua/lib/filter.lua`."""
        return {"kind": self.kind, "form": self.form, "roots": 1 << self.bits - FEWEST_BITS}

    def entry(self, fingerprint: bytes) -> bytes:
        """Return 2 bytes of root, then an integer of 64 bits in decimal, as Redis keeps it in a set."""
        return _entry(fingerprint, self.bits)


@dataclass(frozen=True, kw_only=True)
class Notes(Filter):
    """No filter: a class of the user's was asked already, and a request is stored if the note of that is still there."""

    kind: ClassVar[str] = "notes"

    def options(self) -> dict[str, Any] | None:
        """Return the options for `exchange.lua`."""
        return {"kind": self.kind}


class Renew(StrEnum):
    """The event that keeps an entry from expiring."""

    MET = "met"  # a request with this fingerprint: it is as good as new then
    HITS = "hits"  # the same, but each time for one generation more: the more often it was met, the longer it stays
    WRITTEN = "written"  # nothing: it expires some time after it was first seen


@dataclass(frozen=True, kw_only=True)
class Rolling(Exact):
    """Exact, in `generations`. A new one is begun when the newest has its share of `max_entries` or `max_age_s`, and
    the oldest is dropped then: at most that many entries and seconds are kept, and at least half of it (renewed when MET) or
    three quarters (else).
    """

    kind: ClassVar[str] = "rolling"
    forgets: ClassVar[bool] = True
    max_entries: int = 0
    """0: entries do not expire by number."""
    max_age_s: float = 0.0
    """0: entries do not expire by age."""
    renew: Renew = Renew.MET

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_entries:
            _checked("DUPEFILTER_MAX_ENTRIES", self.max_entries, FEWEST_ENTRIES, 1e12)
        if self.max_age_s:
            _checked("DUPEFILTER_MAX_AGE", self.max_age_s, SHORTEST_AGE_S, 1e9)
        if not self.max_entries and not self.max_age_s:
            raise ConfigError(
                f"a {self.kind} dupefilter needs a bound: set DUPEFILTER_MAX_ENTRIES (number) or DUPEFILTER_MAX_AGE (s), or both"
            )

    @property
    def generations(self) -> int:
        """More of them expire more evenly, and each is asked about each new request."""
        return 2 if self.renew is Renew.MET else 4

    def options(self) -> dict[str, Any] | None:
        """Return the options for `lua/lib/filter.lua`."""
        return {
            **(super().options() or {}),
            "generations": self.generations,
            "max_entries": self.max_entries,
            "max_age_ms": round(self.max_age_s * 1000),
            "renew": self.renew,
        }


@dataclass(frozen=True, kw_only=True)
class Bloom(Filter):
    """A scalable Bloom filter: layers, each twice as large as the one before and with less false positives, so that all of them
    together keep the promised rate. `capacity` entries fit into the first one. Uses RedisBloom where the server has it, if
    `native` is left on.
    """

    kind: ClassVar[str] = "bloom"
    false_positives: float = 1e-4
    """Part of the new requests that counts as seen and is never fetched."""
    capacity: int = 1_000_000
    native: bool = field(default=True)

    def __post_init__(self) -> None:
        _checked("DUPEFILTER_FALSE_POSITIVES", self.false_positives, 1e-9, 0.5)
        _checked("DUPEFILTER_CAPACITY", self.capacity, 1, 1e12)

    @property
    def form(self) -> str:
        """The content of the base key."""
        return f"{self.kind} false_positives={self.false_positives:g}"

    def options(self) -> dict[str, Any] | None:
        """Return the options for `lua/lib/filter.lua`."""
        layers = layer_plans(self.false_positives, self.capacity)
        return {"kind": self.kind, "form": self.form, "layers": layers, "native": self.native, "rate": str(self.false_positives)}

    def entry(self, fingerprint: bytes) -> bytes:
        """Return 64 bits, from which `lua/lib/bloom.lua` chooses block and bits."""
        return sha1(fingerprint, usedforsecurity=False).digest()[:8]


def misfit(key: str, there: str, wanted: str) -> ConfigError:
    """Return the error for a key that holds another dupefilter than this process is set to."""
    return ConfigError(
        f"{key} holds a dupefilter of the form {there!r}, this process is set to {wanted!r}: give all processes the same"
        " DUPEFILTER_CLASS and parameters, or name another SCHEDULER_DUPEFILTER_KEY, or start empty with SCHEDULER_FLUSH_ON_START"
    )


SWEEP = 1000
"""Keys removed in one call: Redis is not held for longer than a millisecond or two."""


def _ask(client: redis.Redis, operation: str, key: str, filter: Filter, entries: Sequence[bytes]) -> list[Any]:
    args = {"filter": msgspec.msgpack.encode(filter.options()), "entries": entries}
    answers: list[Any]
    form, *answers = script(operation)(client, {"seen": key}, args)
    if form:
        raise misfit(key, form.decode(), filter.form)
    return answers


def seen(client: redis.Redis, key: str, filter: Filter, entries: Sequence[bytes]) -> list[bool]:
    """Return for each entry True if it was seen before, and mark all as seen. Not for a plain set, which is one SADD.

    Raises ConfigError when another dupefilter is at `key`.
    """
    return [answer == 1 for answer in _ask(client, "dupefilter_seen", key, filter, entries)]


def clear(client: redis.Redis, key: str) -> None:
    """Empty the filter of any kind at `key`. It counts as empty with the first of the calls that this takes."""
    while script("dupefilter_clear")(client, {"seen": key}, {"most": SWEEP}):
        pass


def begin_to_clear(pipe: redis.client.Pipeline, key: str) -> None:
    """Add the first of the calls of `clear` to a transaction."""
    empty = script("dupefilter_clear")
    pipe.execute_command("EVAL", empty.source, *empty.operands({"seen": key}, {"most": SWEEP}))  # type: ignore[no-untyped-call]


def false_positive_rate(form: str, layers: str) -> float:
    """Return the estimated share of new requests that a Bloom filter takes for seen now, from the fields of its hash.

    0.0 for one without layers, or with fields that are not ours.
    """
    passed = 1.0
    for record in filter(None, layers.split(",")):
        try:
            _, entries, hashes, blocks, capacity = map(int, record.split(":"))
        except ValueError:
            return 0.0
        if hashes:
            rate = block_rate(entries / max(blocks, 1), hashes)
        else:
            promised = re.search(r"false_positives=(\S+)", form)
            rate = native_rate(float(promised[1]), capacity, entries) if promised else 0.0
        passed *= 1 - rate
    return 1 - passed
