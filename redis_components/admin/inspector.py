"""A crawl as it is seen from outside, in constant time, the memory of a Redis by kinds of keys, and the few acts of an operator.

The exporter, `trawl status` and the supervisor use `snapshot`; memory is estimated in a bounded number of commands.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import Any

import redis

from redis_components.dupefilters import client as filter_access
from redis_components.dupefilters.client import false_positive_rate, report
from redis_components.errors import ConfigError
from redis_components.frontier.holds import REQUESTS, parked_lots
from redis_components.keys import CrawlKeys
from redis_components.server.scripts import script
from redis_components.server.untrusted_values import answers_of, as_text, number, whole
from redis_components.utils import bytes_to_str

from .crawl_records import CrawlRecord, CrawlRecords

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
    for raw_fields in answers:
        for key, raw in (raw_fields or {}).items():
            name = as_text(key)
            if not wanted(name):
                continue
            with suppress(ValueError):
                value = number(raw, -_BOUND, _BOUND)
                found[name] += value
    return dict(found)


@dataclass(frozen=True, kw_only=True)
class CrawlSnapshot:
    """Sizes of one spider's crawl at one moment."""

    spider: str
    start_tasks: int  # start tasks that wait, in all lanes
    backlog: int  # start tasks of a backfill that may not be taken yet
    thread_records: int  # threads with a record of their stored posts
    start_tokens: int  # threads whose last start task was not carried out yet
    ready: int  # requests that wait, those of lanes and those that wait for their time included
    oldest_ready_at: float = 0.0
    """When the oldest that may be leased was stored first (epoch s, Redis); 0: none waits, or that is not known."""
    leased: int  # requests some crawler works on
    leased_tasks: int  # start tasks that are becoming requests
    parked: int  # requests set aside, because their site is held
    parked_tasks: int  # start tasks, counted in the same way
    dead: int  # requests and start tasks given up, kept with their reasons
    fingerprints: int  # entries of the dupefilter
    false_positive_rate: float  # of the dupefilter, by estimate: part of the new requests that it takes for seen
    items: int  # items that wait for a consumer
    bad_items: int  # items that their consumer refused
    item_bytes: int = 0  # memory of Redis that both take, by estimate
    max_items: int = 0  # of both, from which on no page is started; 0: any number
    max_item_bytes: int = 0  # the same by memory
    consumer: str = ""  # of the fleet, that takes the items; "": they are the user's
    redis: str = ""  # where the crawl is, if not in this Redis: then the sizes here are not its own
    owners: int  # crawler processes with a heartbeat
    acked: int  # requests finished, ever
    reclaimed: int  # leases taken back from dead owners, ever
    stats: dict[str, str]  # stats over all processes
    overflow: int = 0  # start tasks that another service has made and that wait until the start key has capacity

    @property
    def backed_up(self) -> bool:
        """So many items wait, or were refused, that the crawlers start no page."""
        by_number = 0 < self.max_items <= self.items + self.bad_items
        return by_number or 0 < self.max_item_bytes <= self.item_bytes


def snapshot(
    client: redis.Redis, spider: str, keys: CrawlKeys | None = None, *, record: CrawlRecord | None = None
) -> CrawlSnapshot:
    """Return the sizes of the crawl of `spider`, all of one moment, in one round trip, after one for its record.

    `keys`: look at these, in place of those that its crawlers have recorded (`crawl_records`). `record`: what they have
    recorded, where that was read before.
    """
    if keys is None:
        record = record or CrawlRecords(client).of(spider)
    keys = keys or (record.keys if record else CrawlKeys.for_spider(spider))
    return _snapshot(client, spider, keys, record)


def _snapshot(client: redis.Redis, spider: str, keys: CrawlKeys, record: CrawlRecord | None) -> CrawlSnapshot:
    return _from_reply(spider, script("snapshot")(client, _names(keys), {}), record)


def snapshots(
    client: redis.Redis, crawls: Iterable[tuple[str, CrawlKeys, CrawlRecord | None]]
) -> dict[str, CrawlSnapshot | redis.ResponseError]:
    """Return the sizes of many crawls, each by its spider, in one round trip; Redis's error for one that cannot be read, as with
    a key of another type. Raises `redis.RedisError` when Redis does not answer.
    """
    wanted = list(crawls)
    replies = script("snapshot").each(client, [_operands(keys) for _, keys, _ in wanted])
    return {
        spider: reply if isinstance(reply, redis.ResponseError) else _from_reply(spider, reply, record)
        for (spider, _, record), reply in zip(wanted, replies, strict=True)
    }


@lru_cache(maxsize=1024)
def _operands(keys: CrawlKeys) -> tuple[Any, ...]:
    return tuple(script("snapshot").operands(_names(keys), {}))


def _names(keys: CrawlKeys) -> dict[str, str | list[str]]:
    return {
        "start_tasks": keys.start_tasks(),
        "ready": keys.ready(),
        "aside": keys.ready_aside(),
        "counters": keys.counters(),
        "dead": keys.dead(),
        "seen": keys.fingerprints(),
        "items": keys.item_stream(),
        "bad_items": keys.bad_items(),
        "owners": keys.owners(),
        "stats": keys.stats_hash(),
        "backlog": keys.backlog(),
        "threads": keys.threads(),
        "tokens": keys.start_tokens(),
        "overflow": keys.overflow(),
        "more_keys": keys.more_task_keys,
    }


def _from_reply(spider: str, reply: Any, record: CrawlRecord | None) -> CrawlSnapshot:
    waiting, ready, counters, dead, fingerprints, items, bad_items, owners, stats, (form, layers), known, used, oldest_ms = reply
    leased, leased_tasks, acked, reclaimed, parked, parked_tasks = map(_total, counters)
    return CrawlSnapshot(
        spider=spider,
        start_tasks=waiting,
        backlog=known[0],
        overflow=known[3],
        thread_records=known[1],
        start_tokens=known[2],
        ready=ready,
        oldest_ready_at=oldest_ms / 1000,
        leased=leased,
        leased_tasks=leased_tasks,
        parked=parked,
        parked_tasks=parked_tasks,
        dead=dead,
        fingerprints=fingerprints,
        false_positive_rate=false_positive_rate(bytes_to_str(form), bytes_to_str(layers)),
        items=items,
        bad_items=bad_items,
        item_bytes=used,
        max_items=record.max_items if record else 0,
        max_item_bytes=record.max_item_bytes if record else 0,
        consumer=record.consumer if record else "",
        redis=record.redis if record else "",
        owners=owners,
        acked=acked,
        reclaimed=reclaimed,
        stats={stats[i].decode("utf-8", "replace"): stats[i + 1].decode("utf-8", "replace") for i in range(0, len(stats), 2)},
    )


def total_of(stats: Mapping[str, str], name: str) -> int:
    """Return a sum of the crawlers' stats; 0 where there is none, or none that is a number."""
    try:
        return int(number(stats.get(name, "0"), 0.0, 1e18))
    except ValueError:
        return 0


def _total(raw: bytes | None) -> int:
    """Return a counter of the crawl; 0 where it cannot be read: the exchange names it and changes nothing."""
    try:
        return whole(raw) if raw else 0
    except ValueError:
        return 0


def empty_snapshot(spider: str) -> CrawlSnapshot:
    """Return the snapshot of a crawl of which nothing can be read."""
    sizes = {field.name: 0 for field in fields(CrawlSnapshot)}
    return CrawlSnapshot(**{**sizes, "spider": spider, "false_positive_rate": 0.0, "stats": {}})  # type: ignore[arg-type]  # the rest are numbers


def wipe(client: redis.Redis, keys: CrawlKeys, *, but_not_for: str, fingerprints: bool = True) -> str | None:
    """Delete a crawl's queue and dupefilter (without its `fingerprints`: only the queue), unless a live owner other than
    `but_not_for` works with them.

    Returns None when that is done, else the owner that works with them. An owner that joins meanwhile is seen. What is held
    stays held.
    """
    at_work: str | None = None
    seconds, micros = client.time()  # before the transaction, which keeps a connection to itself

    def delete(pipe: redis.client.Pipeline) -> None:
        nonlocal at_work
        now = seconds * 1000 + micros // 1000
        known: Any = pipe.zrange(keys.owners(), 0, 999, withscores=True)
        owners = {bytes_to_str(owner): expires for owner, expires in known}
        others = [owner for owner, expires in owners.items() if expires > now and owner != but_not_for]
        lots = parked_lots(pipe, keys)
        lanes: Any = pipe.zrange(keys.lanes(), 0, -1)
        pipe.multi()
        at_work = others[0] if others else None
        if at_work is not None:
            return
        leases = (keys.leases(owner) for owner in {*owners, but_not_for})
        requests = [lot for lot in lots if lot.startswith(REQUESTS)]
        parked = (keys.parked_lot(lot) for lot in requests)
        paced = (keys.lanes(), keys.later_requests(), *(keys.lane(bytes_to_str(lane)) for lane in lanes))
        pipe.delete(keys.ready(), keys.owners(), keys.numbers(), keys.counters(), *parked, *leases, *paced)
        if requests:
            pipe.hdel(keys.parked(), *requests)
        if len(requests) < len(lots):  # start tasks stay, parked or not
            pipe.hset(keys.counters(), "parked_tasks", sum(n for lot, n in lots.items() if lot not in requests))
        if fingerprints:
            filter_access.begin_to_clear(pipe, keys.fingerprints())

    client.transaction(delete, keys.owners())
    if at_work is None and fingerprints:
        filter_access.clear(client, keys.fingerprints())
    return at_work
