"""A dupefilter in Redis from outside of the exchange: asking it, removing from it, emptying it, and its report."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import redis

from redis_components.errors import ConfigError
from redis_components.keys import CrawlKeys
from redis_components.server.scripts import script
from redis_components.utils import bytes_to_str

from .kinds import Filter, block_rate, misfit, native_rate

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


def forget(client: redis.Redis, key: str, filter: Filter, entries: Sequence[bytes]) -> list[bool]:
    """Remove entries; whether each was known.

    Raises ConfigError when another dupefilter is at `key`, or a Bloom filter holds one of them; the others are removed.
    """
    answers = _ask(client, "dupefilter_forget", key, filter, entries)
    if b"kept" in answers:
        raise ConfigError(
            f"{key}: a Bloom filter cannot forget single requests; send them with dont_filter, or use another DUPEFILTER_CLASS"
        )
    return [answer == b"forgotten" for answer in answers]


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


SAMPLE = 100
"""Keys of each part whose memory is asked for."""
BLOCKS_IN_KEY = 341
"""As in `lua/lib/bloom.lua`."""


@dataclass(frozen=True, kw_only=True)
class FilterReport:
    """One dupefilter at one moment."""

    form: str  # kind and parameters, as in `filters`; "" where there is none
    entries: int
    keys: int  # at most; buckets without entries have none
    bytes: int  # of Redis, by estimate
    false_positive_rate: float  # part of the new requests that it takes for seen, by estimate

    @property
    def bytes_per_entry(self) -> float:
        """0.0 where there is no entry."""
        return self.bytes / self.entries if self.entries else 0.0


def report(client: redis.Redis, keys: CrawlKeys) -> FilterReport:
    """Look at the dupefilter of a crawl. Raises ConfigError when something else is at its key."""
    base = keys.fingerprints()
    kind = bytes_to_str(client.type(base))
    own = int(client.memory_usage(base, samples=SAMPLE) or 0)
    if kind in ("none", "set"):
        return FilterReport(
            form="set" if kind == "set" else "",
            entries=client.scard(base),
            keys=int(kind == "set"),
            bytes=own,
            false_positive_rate=0.0,
        )
    fields = ("form", "size", "generations", "leaving", "layers")
    values = client.hmget(base, fields) if kind == "hash" else [None]
    if values[0] is None:
        raise ConfigError(f"{base} is a {kind} that Trawl did not write; remove it, or name another key")
    form, size, generations, leaving, layers = (bytes_to_str(value or b"") for value in values)
    parts = [*_parts(",".join((generations, leaving)), buckets=True), *_parts(layers, buckets=False)]
    return FilterReport(
        form=form,
        entries=int(size),
        keys=1 + sum(count for _, count in parts),
        bytes=own + sum(_bytes(client, [keys.fingerprint_part(part, n) for n in _spread(count)], count) for part, count in parts),
        false_positive_rate=false_positive_rate(form, layers),
    )


def part_name(part: int) -> str:
    """Return the id of a part as it stands in keys: in base 36, as in `lua/lib/filter_state.lua`."""
    digits = ""
    while part or not digits:
        part, digit = divmod(part, 36)
        digits = "0123456789abcdefghijklmnopqrstuvwxyz"[digit] + digits
    return digits


def _parts(records: str, *, buckets: bool) -> Iterator[tuple[str, int]]:
    """Name and number of keys of each part."""
    for record in filter(None, records.split(",")):
        part, _, *rest = map(int, record.split(":"))
        if buckets:
            yield part_name(part), rest[0]
        else:
            hashes, blocks, _ = rest
            yield part_name(part), -(-blocks // BLOCKS_IN_KEY) if hashes else blocks


def _spread(count: int) -> Iterable[int]:
    return range(0, count, max(1, count // SAMPLE))


def _bytes(client: redis.Redis, sample: list[str], count: int) -> int:
    with client.pipeline(transaction=False) as pipe:
        for key in sample:
            pipe.memory_usage(key)
        sizes = [size or 0 for size in pipe.execute()]
    return round(sum(sizes) / len(sizes) * count) if sizes else 0
