"""Copies of keys of one instant, and their values in portions, with the commands that write a portion again.

Not DUMP and RESTORE, but for types of modules: their payload is one piece, so that a dupefilter of gigabytes would have to fit
into memory three times, and an older server refuses it.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, TypeVar

import redis

from redis_components.errors import TrawlError
from redis_components.keys import CrawlKeys, CrawlRecords, crawl_record_of, limits_key
from redis_components.server.names import fleet_namespace, literal
from redis_components.server.untrusted_values import as_bytes, as_text, readable
from workers.state.keys import FleetKeys, fixed_keys

SCANNED = 1_000  # keys for each round trip


@dataclass(frozen=True, kw_only=True)
class KeyNames:
    """The keys of one fleet: each of `bases`, and every key that begins with one of them and a colon."""

    bases: tuple[str, ...]
    crawls: tuple[CrawlKeys, ...]

    def owns(self, key: bytes) -> bool:
        """Return True if a key is the fleet's."""
        return any(key == base or key.startswith(base + b":") for base in self._encoded())

    def is_of_living_processes(self, key: bytes) -> bool:
        """Return True if a key describes processes that live now: a restored one would describe others."""
        fleet = FleetKeys()
        exact = {one.encode() for one in (fleet.nodes(), fleet.crawlers(), fleet.orders(), fleet.beats())}
        return key in exact or key.startswith(fleet.backup_copy("", "").rstrip(":").encode() + b":")

    def found(self, client: redis.Redis) -> Iterator[bytes]:
        """Yield every key of the fleet that outlives its processes, by SCAN. Raises `redis.RedisError`."""
        namespace = fleet_namespace()
        # Without a namespace the names have no common beginning: the server sends all, which takes no memory here.
        match = f"{literal(namespace)}:*" if namespace and all(b.startswith(namespace) for b in self.bases) else None
        seen = set(self.fixed())
        yield from seen
        for name in client.scan_iter(match=match, count=SCANNED):
            key = as_bytes(name)
            if key not in seen and self.owns(key) and not self.is_of_living_processes(key):
                seen.add(key)
                yield key

    def crawl_records(self) -> str:
        """Return the key of the records of all crawls."""
        return FleetKeys().crawls()

    def with_records(self, stored: Mapping[bytes, bytes]) -> KeyNames:
        """Return these names and the names of the crawls in other records, by service."""
        records = {as_text(name): one for name, one in readable(stored, crawl_record_of).items()}
        crawls = [record.keys for record in records.values()]
        bases = [base for keys in crawls for base in _bases(keys)]
        return replace(
            self, bases=tuple(dict.fromkeys((*self.bases, *bases))), crawls=tuple(dict.fromkeys((*self.crawls, *crawls)))
        )

    def fixed(self) -> list[bytes]:
        """Return the keys that have the same name in each fleet of these services, also where they do not exist now."""
        named = [key for keys in (FleetKeys(), *self.crawls) for key in fixed_keys(keys)]
        named += [key for crawl in self.crawls for key in (*crawl.more_start_urls, *crawl.turn_keys)]
        return [key for key in dict.fromkeys(name.encode() for name in named) if not self.is_of_living_processes(key)]

    def _encoded(self) -> tuple[bytes, ...]:
        return tuple(base.encode() for base in self.bases)


def key_names(client: redis.Redis, services: Iterable[str]) -> KeyNames:
    """Return the keys of the fleet of this namespace, whose services are `services` and all that ever had a crawler."""
    records = CrawlRecords(client).all()
    names = list(dict.fromkeys((*services, *records)))
    crawls = tuple(CrawlRecords(client).keys_of_all(names).values())
    namespace = fleet_namespace()
    bases = [namespace] if namespace else [FleetKeys().prefix, limits_key()]
    for keys in crawls:
        bases += _bases(keys)
    return KeyNames(bases=tuple(dict.fromkeys(bases)), crawls=crawls)


def _bases(keys: CrawlKeys) -> list[str]:
    return [keys.requests, keys.dupefilter, keys.start_urls, *keys.more_start_urls, keys.items, keys.stats, keys.limits]


PORTION = 500  # elements
LIST_PORTION = 100  # items may be large
DUMPED = "dump"
"""The kind of a value that only its own module understands."""
KINDS = ("hash", "list", "set", "string", "zset", DUMPED)

Values = list[Any]
T = TypeVar("T")


def in_lots(things: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield the things in lists of `size`, the last one shorter."""
    rest = iter(things)
    while lot := list(islice(rest, size)):
        yield lot


def portions(client: redis.Redis, key: str | bytes, kind: str) -> Iterator[Values]:
    """Yield the values of a key that does not change, flat: fields and values of a hash, members and scores of a sorted set.

    An element may come twice, in no more than two portions. Raises `redis.RedisError`.
    """
    if kind == "hash":
        yield from _flat(client.hscan_iter(key, count=PORTION))
    elif kind == "zset":
        yield from _flat(client.zscan_iter(key, count=PORTION))
    elif kind == "set":
        yield from in_lots(client.sscan_iter(key, count=PORTION), PORTION)
    elif kind == "list":
        start = 0
        while part := client.lrange(key, start, start + LIST_PORTION - 1):
            yield list(part)
            start += len(part)
    elif kind == "string":
        yield [as_bytes(client.get(key) or b"")]
    else:
        yield [client.dump(key)]


def write(client: Any, key: str | bytes, kind: str, values: Values) -> None:
    """Add a portion to a key. Raises ValueError for a kind or a form that no backup has."""
    if kind not in KINDS or not values:
        raise ValueError(f"a value of kind {kind!r:.40}")
    if kind == "hash":
        client.hset(key, items=values)
    elif kind == "zset":
        client.zadd(key, dict(zip(values[::2], values[1::2], strict=True)))
    elif kind == "set":
        client.sadd(key, *values)
    elif kind == "list":
        client.rpush(key, *values)
    elif kind == "string":
        client.set(key, values[0])
    else:
        client.restore(key, 0, values[0], replace=True)


def _flat(pairs: Iterable[tuple[Any, Any]]) -> Iterator[Values]:
    for part in in_lots(pairs, PORTION):
        yield [value for pair in part for value in pair]


KEPT_MS = 3_600_000
"""Longest life of the copies: of a backup that was killed they go then."""
TRIES = 10  # a crawler that begins or ends between looking and copying makes or removes a key
AT_ONCE = 500  # keys for each round trip


class BackupError(TrawlError):
    """A backup that cannot be made or read; the message has the reason."""


@dataclass(frozen=True, kw_only=True)
class Copied:
    """One key, and where its copy is."""

    key: bytes
    copy: str
    kind: str
    left_ms: int  # time to live when it was copied; -1: it has none


@contextmanager
def snapshot(client: redis.Redis, names: KeyNames) -> Iterator[list[Copied]]:
    """Yield copies of every key of the fleet, of one instant; they are removed at the end of the block.

    Locks and marks of living processes (strings with a TTL) are left out. Raises BackupError where Redis has no room for the
    copies or keys change too quickly, `redis.RedisError`.
    """
    word = secrets.token_hex(6)
    keys: list[bytes] = []
    try:
        implied: set[bytes] = set()
        for _ in range(TRIES):
            keys = list({*names.found(client), *implied})
            _check_room(client, keys)
            copied, implied = _copy(client, names, keys, word)
            if implied <= set(keys):
                break
            _remove(client, word, len(keys))
        else:
            raise BackupError("crawlers begin and end so quickly that no instant could be copied: try again")
        yield [one for one in copied if one.kind != "none" and not (one.kind == "string" and one.left_ms >= 0)]
    finally:
        _remove(client, word, len(keys))


def read(client: redis.Redis, copies: list[Copied]) -> Iterator[tuple[Copied, Values]]:
    """Yield the values of the copies, in portions; each copy is removed when it is read.

    Raises BackupError when a copy is gone, which an evicting Redis does, `redis.RedisError`.
    """
    for one in copies:
        kind = one.kind if one.kind in KINDS else DUMPED
        for values in portions(client, one.copy, kind):
            yield Copied(key=one.key, copy=one.copy, kind=kind, left_ms=one.left_ms), values
        if not client.unlink(one.copy):
            raise BackupError(f"the copy of {as_text(one.key)} was gone before it was read: does Redis evict keys?")


def _copy(client: redis.Redis, names: KeyNames, keys: list[bytes], word: str) -> tuple[list[Copied], set[bytes]]:
    """Copy the keys; return the copies, and the keys whose names follow from others, as they were at that instant."""
    copies = [FleetKeys().backup_copy(word, number) for number in range(len(keys))]
    with client.pipeline(transaction=True) as pipe:
        for key, copy in zip(keys, copies, strict=True):
            pipe.copy(key, copy)  # type: ignore[arg-type]  # redis-py's types know text only
            pipe.pttl(key)
            pipe.pexpire(copy, KEPT_MS)
        for crawl in names.crawls:
            pipe.zrange(crawl.owners(), 0, -1)
            pipe.zrange(crawl.lanes(), 0, -1)
            pipe.hkeys(crawl.parked())
        replies: list[Any] = pipe.execute()
    kinds: list[str] = []
    for some in in_lots(copies, AT_ONCE):
        with client.pipeline(transaction=False) as pipe:
            for copy in some:
                pipe.type(copy)
            kinds += map(as_text, pipe.execute())
    copied = [
        Copied(key=key, copy=copy, kind=kind, left_ms=left_ms)
        for key, copy, kind, left_ms in zip(keys, copies, kinds, replies[1 : 3 * len(keys) : 3], strict=True)
    ]
    return copied, _implied(names, replies[3 * len(keys) :])


def _implied(names: KeyNames, replies: list[Any]) -> set[bytes]:
    """Return the keys of leases, lanes and lots that owners, lanes and counts name."""
    found: list[str] = []
    for number, crawl in enumerate(names.crawls):
        owners, lanes, lots = replies[3 * number : 3 * number + 3]
        found += [crawl.leases(as_text(owner)) for owner in owners]
        found += [crawl.lane(as_text(lane)) for lane in lanes]
        found += [crawl.parked_lot(as_text(lot)) for lot in lots]
    return {key.encode() for key in found}


def _check_room(client: redis.Redis, keys: list[bytes]) -> None:
    """Raise BackupError where the copies would not fit below `maxmemory`."""
    memory = client.info("memory")
    most = int(memory.get("maxmemory", 0))
    if not most:
        return
    need = 0
    for some in in_lots(keys, AT_ONCE):
        with client.pipeline(transaction=False) as pipe:
            for key in some:
                pipe.memory_usage(key)
            need += sum(int(one or 0) for one in pipe.execute())
    if (used := int(memory["used_memory"])) + need > most:
        raise BackupError(
            f"Redis uses {used:,} of maxmemory {most:,} bytes, a copy of the fleet's keys needs {need:,} more for the time of the"
            " backup: raise maxmemory"
        )


def _remove(client: redis.Redis, word: str, count: int) -> None:
    for some in in_lots(range(count), AT_ONCE):
        client.unlink(*(FleetKeys().backup_copy(word, number) for number in some))
