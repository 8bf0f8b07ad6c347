"""Looking at a crawl from outside, in constant time, and the few acts of an operator on it. The exporter, `trawl status` and
the supervisor use this.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any

import redis

from redis_components.dupefilters import client as filter_access
from redis_components.dupefilters.client import false_positive_rate
from redis_components.frontier.holds import REQUESTS, parked_lots
from redis_components.keys import CrawlKeys
from redis_components.server.scripts import script
from redis_components.server.untrusted_values import number, whole
from redis_components.utils import bytes_to_str

from .crawl_records import CrawlRecord, CrawlRecords


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
        "more_keys": list(dict.fromkeys((*keys.more_start_urls, keys.later_tasks(), *keys.turn_keys, keys.later_turns()))),
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
