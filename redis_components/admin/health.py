"""The state of a Redis: is it set up and able to keep a frontier (by INFO alone, which managed servers allow, too), its memory by
kinds of keys, and the size of a dupefilter.

Each finding names the problem, its consequence, and the fix. Memory is estimated in a bounded number of commands.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import redis

from redis_components.errors import ConfigError
from redis_components.filters import false_positive_rate
from redis_components.keys import CrawlKeys
from redis_components.server.untrusted_values import as_text
from redis_components.utils import bytes_to_str

OLDEST = (6, 2)
NEARLY_FULL = 0.9  # of maxmemory


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One thing that is wrong in a fleet, whichever part of it found that."""

    what: str  # one line
    fix: str = ""  # what to do next, one line; "" where it is part of `what`
    grave: bool = True  # something does not work, or data will be lost; else it works, and will not always

    def __str__(self) -> str:
        """Return one line."""
        return f"{self.what}: {self.fix}" if self.fix else self.what


@dataclass(frozen=True, kw_only=True)
class Finding(Problem):
    """One thing that is wrong with the server."""

    name: str  # for metrics: `eviction`, `no_aof`, `cannot_save`, `memory`, `version`, `replica`, `loading`


NAMES = ("eviction", "no_aof", "cannot_save", "memory", "version", "replica", "loading")
"""Of all findings that there can be."""


def look(client: redis.Redis) -> list[Finding]:
    """Return the problems of the server now. Raises `redis.RedisError`."""
    found: Any = client.info()
    if found and all(isinstance(value, dict) for value in found.values()):  # of a Cluster: by node
        return list({one.name: one for info in found.values() for one in findings(info)}.values())
    return findings(found)


def findings(info: Mapping[str, Any]) -> list[Finding]:
    """Return the problems in INFO that an operator has to mend, the worst first."""
    return sorted(_found(info), key=lambda one: not one.grave)


_WRITES = {"append-only file": "aof_last_write_status", "snapshot": "rdb_last_bgsave_status"}


def _found(info: Mapping[str, Any]) -> Iterator[Finding]:
    policy, version = str(info.get("maxmemory_policy", "noeviction")), str(info.get("redis_version", ""))
    limit, used = int(info.get("maxmemory", 0)), int(info.get("used_memory", 0))
    if policy != "noeviction":
        yield Finding(
            name="eviction",
            what=f"Redis may evict keys (maxmemory-policy {policy}): queues vanish without a word",
            fix="CONFIG SET maxmemory-policy noeviction, and in its configuration",
            grave=limit > 0,
        )
    if limit and used > limit * NEARLY_FULL:
        yield Finding(
            name="memory",
            what=f"Redis uses {used / limit:.0%} of its maxmemory ({used / 2**20:,.0f} of {limit / 2**20:,.0f} MiB)",
            fix="raise maxmemory, drain queues, or purge what is dead (trawl dead purge)",
            grave=used >= limit,
        )
    if not int(info.get("aof_enabled", 1)) and info.get("role", "master") == "master":
        yield Finding(
            name="no_aof",
            what="Redis has no append-only file: what was queued since the last snapshot is gone when it ends",
            fix="CONFIG SET appendonly yes, and in its configuration",
            grave=False,
        )
    if failing := [name for name, field in _WRITES.items() if str(info.get(field, "ok")) != "ok"]:
        yield Finding(
            name="cannot_save",
            what=f"Redis cannot write its {' and '.join(failing)} to disk",
            fix="make room on its disk (df), and look at its log; it goes on without a restart then",
        )
    if () < tuple(map(int, re.findall(r"\d+", version)[:2])) < OLDEST:
        yield Finding(name="version", what=f"Redis {version} is too old", fix="install 6.2 or newer")
    if info.get("role") == "slave":
        primary = f"{info.get('master_host', '?')}:{info.get('master_port', '?')}"
        yield Finding(name="replica", what=f"this Redis is a replica of {primary} and takes no writes", fix="name the primary")
    if int(info.get("loading", 0)):
        yield Finding(name="loading", what="Redis is still loading its data", fix="wait", grave=False)


KINDS = ("requests", "leases", "dupefilter", "start_tasks", "threads", "validators", "items", "refused_items", "dead", "other")
"""`other`: the broker's queues, results, records of the fleet, and what Redis itself needs."""
_MOST_OWNERS = 100
_LANES_LOOKED_AT = 20


@dataclass(frozen=True, kw_only=True)
class RedisMemory:
    """Bytes of one server, or of all primaries of a cluster."""

    used: int = 0
    limit: int = 0  # maxmemory; 0: none
    kinds: Mapping[str, int] = field(default_factory=dict)  # of `KINDS`


def memory_of(client: redis.Redis, crawls: Iterable[CrawlKeys]) -> RedisMemory:
    """Ask for the sizes of these crawls' keys; keys that several share count once. Raises `redis.RedisError`."""
    kinds, met = dict.fromkeys(KINDS, 0), set[str]()
    for keys in crawls:
        wanted = {key: kind for key, kind in _keys(client, keys).items() if key not in met}
        met |= wanted.keys()
        for key, size in _sizes(client, list(wanted)).items():
            kinds[wanted[key]] += size
        kinds["requests"] += _lanes(client, keys, met)
        kinds["dupefilter"] += _dupefilter(client, keys, met)
    used, limit = _total_bytes(client)
    kinds["other"] = max(0, used - sum(kinds.values()))
    return RedisMemory(used=used, limit=limit, kinds=kinds)


def _keys(client: redis.Redis, keys: CrawlKeys) -> dict[str, str]:
    """Return the kind of each single key."""
    owners: Any = client.zrange(keys.owners(), 0, _MOST_OWNERS - 1)
    named = {
        "requests": (keys.ready(), keys.later_requests()),
        "leases": [keys.leases(as_text(owner)) for owner in owners],
        "start_tasks": (
            *(keys.start_tasks(), *keys.more_start_urls, keys.later_tasks(), keys.later_turns(), *keys.turn_keys),
            *(keys.overflow(), keys.overflow_order(), keys.backlog(), keys.fed_ids(), keys.fed_waiting()),
        ),
        "threads": (keys.threads(), keys.start_tokens(), keys.pending(), keys.seeded()),
        "validators": (keys.validators(), keys.older_validators()),
        "items": (keys.item_stream(), keys.items_moving()),
        "refused_items": (keys.bad_items(),),
        "dead": (keys.dead(),),
    }
    return {key: kind for kind, some in named.items() for key in some}


def _sizes(client: redis.Redis, keys: list[str]) -> dict[str, int]:
    with client.pipeline(transaction=False) as pipe:
        for key in keys:
            pipe.memory_usage(key)
        return {key: int(size or 0) for key, size in zip(keys, pipe.execute(), strict=True)}


def _lanes(client: redis.Redis, keys: CrawlKeys, met: set[str]) -> int:
    """Return the memory of requests in lanes: the mean of some lanes, times their number."""
    if keys.lanes() in met:
        return 0
    met.add(keys.lanes())
    number: Any = client.zcard(keys.lanes())
    some: Any = client.zrandmember(keys.lanes(), _LANES_LOOKED_AT) if number else []
    sizes = _sizes(client, [keys.lane(as_text(lane)) for lane in some])
    return round(sum(sizes.values()) / len(sizes) * number) if sizes else 0


def _dupefilter(client: redis.Redis, keys: CrawlKeys, met: set[str]) -> int:
    if keys.fingerprints() in met:
        return 0
    met.add(keys.fingerprints())
    try:
        return report(client, keys).bytes
    except ConfigError:  # `trawl status` names the fault
        return 0


def _total_bytes(client: redis.Redis) -> tuple[int, int]:
    """Return the memory in use and its limit."""
    found: Any = client.info("memory")
    nodes = found.values() if found and all(isinstance(one, dict) for one in found.values()) else [found]
    return sum(int(one.get("used_memory", 0)) for one in nodes), sum(int(one.get("maxmemory", 0)) for one in nodes)


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
