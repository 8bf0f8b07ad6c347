"""The memory of a Redis by kinds of keys, estimated in a bounded number of commands."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import redis

from redis_components.dupefilters.report import report
from redis_components.errors import ConfigError
from redis_components.keys import CrawlKeys
from redis_components.server.replies import as_text
from redis_components.server.untrusted_values import answers_of, number

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


def look(client: redis.Redis, crawls: Iterable[CrawlKeys]) -> RedisMemory:
    """Ask for the sizes of these crawls' keys; keys that several share count once. Raises `redis.RedisError`."""
    kinds, met = dict.fromkeys(KINDS, 0), set[str]()
    for keys in crawls:
        wanted = {key: kind for key, kind in _keys(client, keys).items() if key not in met}
        met |= wanted.keys()
        for key, size in _sizes(client, list(wanted)).items():
            kinds[wanted[key]] += size
        kinds["requests"] += _lanes(client, keys, met)
        kinds["dupefilter"] += _dupefilter(client, keys, met)
    used, limit = _total(client)
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


def _total(client: redis.Redis) -> tuple[int, int]:
    """Return the memory in use and its limit."""
    found: Any = client.info("memory")
    nodes = found.values() if found and all(isinstance(one, dict) for one in found.values()) else [found]
    return sum(int(one.get("used_memory", 0)) for one in nodes), sum(int(one.get("maxmemory", 0)) for one in nodes)


MOST_PROCESSES = 500
_BOUND = 1e300


def sums(client: redis.Redis, keys: CrawlKeys, now: float, wanted: Callable[[str], bool]) -> dict[str, float]:
    """Return the sum of each wanted stat over the processes that live at `now` (epoch s of Redis); of those that are numbers.

    Two round trips. Raises `redis.RedisError`.
    """
    owners: Any = client.zrangebyscore(keys.owners(), now * 1000, "+inf", start=0, num=MOST_PROCESSES)
    with client.pipeline(transaction=False) as pipe:
        for owner in owners:
            pipe.hgetall(keys.own_stats(as_text(owner)))
        answers = answers_of(pipe) if owners else []
    found: defaultdict[str, float] = defaultdict(float)
    for fields in answers:
        for key, raw in (fields or {}).items():
            name = as_text(key)
            if not wanted(name):
                continue
            with suppress(ValueError):
                value = number(raw, -_BOUND, _BOUND)
                found[name] += value
    return dict(found)
