"""A crawl as it is seen from outside, in constant time, and the few acts of an operator. The exporter, `trawl status` and the
supervisor use `snapshot`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import redis

from redis_components import filters as filter_access
from redis_components.filters import false_positive_rate
from redis_components.frontier.holds import REQUESTS, parked_lots
from redis_components.keys import CrawlKeys, CrawlRecord, CrawlRecords
from redis_components.server.scripts import script
from redis_components.server.untrusted_values import (
    answers_of,
    as_text,
    number,
    whole,
)
from redis_components.utils import bytes_to_str

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
    """Sizes of one spider's crawl at one moment; without sizes, of a crawl of which nothing can be read."""

    spider: str
    start_tasks: int = 0  # start tasks that wait, in all lanes
    backlog: int = 0  # start tasks of a backfill that may not be taken yet
    thread_records: int = 0  # threads with a record of their stored posts
    start_tokens: int = 0  # threads whose last start task was not carried out yet
    ready: int = 0  # requests that wait, those of lanes and those that wait for their time included
    oldest_ready_at: float = 0.0
    """When the oldest that may be leased was stored first (epoch s, Redis); 0: none waits, or that is not known."""
    leased: int = 0  # requests some crawler works on
    leased_tasks: int = 0  # start tasks that are becoming requests
    parked: int = 0  # requests set aside, because their site is held
    parked_tasks: int = 0  # start tasks, counted in the same way
    dead: int = 0  # requests and start tasks given up, kept with their reasons
    fingerprints: int = 0  # entries of the dupefilter
    false_positive_rate: float = 0.0  # of the dupefilter, by estimate: part of the new requests that it takes for seen
    items: int = 0  # items that wait for a consumer
    bad_items: int = 0  # items that their consumer refused
    item_bytes: int = 0  # memory of Redis that both take, by estimate
    max_items: int = 0  # of both, from which on no page is started; 0: any number
    max_item_bytes: int = 0  # the same by memory
    consumer: str = ""  # of the fleet, that takes the items; "": they are the user's
    owners: int = 0  # crawler processes with a heartbeat
    acked: int = 0  # requests finished, ever
    reclaimed: int = 0  # leases taken back from dead owners, ever
    stats: dict[str, str] = field(default_factory=dict)  # stats over all processes
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

    `keys`: look at these, in place of those that its crawlers have recorded (`CrawlRecords`). `record`: what they have
    recorded, where that was read before.
    """
    if keys is None:
        record = record or CrawlRecords(client).of(spider)
    keys = keys or (record.keys if record else CrawlKeys.for_spider(spider))
    return _from_reply(spider, script("snapshot")(client, keys, {}), record)


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
    return tuple(script("snapshot").operands(keys, {}))


_COUNTERS = ("leased", "leased_tasks", "acked", "reclaimed", "parked", "parked_tasks")
_KNOWN = ("backlog", "thread_records", "start_tokens", "overflow")
_RECORDED = ("max_items", "max_item_bytes", "consumer")


def _from_reply(spider: str, reply: Any, record: CrawlRecord | None) -> CrawlSnapshot:
    tasks, ready, counters, dead, fingerprints, items, bad_items, owners, stats, (form, layers), known, used, oldest_ms = reply
    texts = [raw.decode("utf-8", "replace") for raw in stats]
    sizes: dict[str, Any] = dict(zip((*_COUNTERS, *_KNOWN), (*map(_total, counters), *known), strict=True))
    return CrawlSnapshot(
        spider=spider,
        start_tasks=tasks,
        ready=ready,
        oldest_ready_at=oldest_ms / 1000,
        dead=dead,
        fingerprints=fingerprints,
        false_positive_rate=false_positive_rate(bytes_to_str(form), bytes_to_str(layers)),
        items=items,
        bad_items=bad_items,
        item_bytes=used,
        owners=owners,
        stats=dict(zip(texts[::2], texts[1::2], strict=True)),
        **sizes,
        **({name: getattr(record, name) for name in _RECORDED} if record else {}),
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


def expire_owner(client: redis.Redis, keys: CrawlKeys, owner: str, why: str = "") -> bool:
    """Let an owner count as dead at once, because its process was seen to end; True if the frontier knew it. The next exchange of
    any process gives its leases back (`lua/lib/reclaim_leases.lua`).

    `owner` is the first name of the process; the names it took after being fenced end too. `why` it
    ended stands with what is given up over that.
    """
    named = script("expire_owner").named(keys, own_stats=keys.own_stats(owner))
    return bool(script("expire_owner")(client, named, {"owner": owner, "why": " ".join(why.split())[:600]}))


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
