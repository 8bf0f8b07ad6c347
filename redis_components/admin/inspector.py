"""A crawl as it is seen from outside, in constant time, and the few acts of an operator; and the place of each service's crawl:
its keys, its Redis and the consumer of its items, as last reported by its crawlers.

A project may name other keys than the default ones, in its settings or on the spider. All that look at a crawl from outside
(status, exporter, autoscaler, dead letters, holds, the writer) use these records, also when no crawler is left. The exporter,
`trawl status` and the supervisor use `snapshot`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Self, cast

import redis

from redis_components import filters as filter_access
from redis_components.filters import false_positive_rate
from redis_components.frontier.holds import REQUESTS, parked_lots
from redis_components.keys import CrawlKeys, NamespaceKeys
from redis_components.server.scripts import script
from redis_components.server.untrusted_values import (
    JsonRecord,
    answers_of,
    as_bytes,
    as_text,
    hash_at,
    is_foreign,
    number,
    readable,
    whole,
)
from redis_components.utils import bytes_to_str


@dataclass(frozen=True, kw_only=True)
class CrawlRecord(JsonRecord):
    """The record that a crawler of a service writes when its crawl begins."""

    spider: str
    keys: CrawlKeys
    consumer: str = ""
    """The part of the fleet that consumes its items from the item stream; "": none, they are the user's to consume."""
    max_items: int = 0
    """Items, waiting and refused, from which on its crawlers start no page; 0: any number."""
    max_item_bytes: int = 0
    """The same as memory of Redis in bytes; 0: any."""
    metrics: dict[str, str] = field(default_factory=dict)
    """Its stats that are metrics, as the project's settings name them (`workers.process.stat_metrics`); the version before reads
    the kind of each.
    """
    schemes: tuple[str, ...] = ()
    """Schemes of URLs that it fetches in addition to http and https."""
    at: float = 0.0
    """Time of the record, epoch s."""

    @classmethod
    def from_json(cls, text: bytes | str) -> Self:
        """Read what `to_json` wrote, here or in a newer version. Raises ValueError for anything else."""
        record = super().from_json(text)
        keys = record.keys
        if not all((keys.requests, keys.dupefilter, keys.start_urls, keys.items, keys.stats, *keys.more_start_urls)):
            raise ValueError("an empty key")
        return record


class CrawlRecords:
    """The records of one fleet, by spider. Methods raise `redis.RedisError` when Redis does not answer.

    A record that cannot be read counts as none: the default keys are looked at then.
    """

    def __init__(self, client: redis.Redis, keys: NamespaceKeys | None = None) -> None:
        self._client = client
        self._key = (keys or NamespaceKeys()).crawls()

    def write(self, record: CrawlRecord) -> None:
        """Store the record of a crawler with a slot in place of an older one. Holds stay, at the new keys."""
        before = self.keys_of(record.spider).holds()
        if before != record.keys.holds():
            with suppress(redis.ResponseError):  # a cluster keeps them in different slots; the fleet's own holds are spread again
                self._client.copy(before, record.keys.holds())  # unless there are holds
        self._client.hset(self._key, record.spider, record.to_json())

    def suggest(self, record: CrawlRecord) -> None:
        """Store the record of a crawler without a slot, unless there is one."""
        self._client.hsetnx(self._key, record.spider, record.to_json())

    def all(self) -> dict[str, CrawlRecord]:
        """Return every record: one for each service that ever had a crawler."""
        return readable(hash_at(self._client, self._key), crawl_record_of)

    def some(self, spiders: Iterable[str]) -> dict[str, CrawlRecord]:
        """Return the records of these services, in one round trip; without those that no crawler has written."""
        names, found = list(spiders), list[Any]()
        try:
            found = cast("list[Any]", self._client.hmget(self._key, names)) if names else []
        except redis.ResponseError as error:
            if not is_foreign(error):
                raise
        fields = {name.encode(): as_bytes(raw) for name, raw in zip(names, found, strict=False) if raw is not None}
        return readable(fields, crawl_record_of)

    def of(self, spider: str) -> CrawlRecord | None:
        """Return the record of one service; None where no crawler has written one."""
        return self.some([spider]).get(spider)

    def keys_of(self, spider: str) -> CrawlKeys:
        """Return the keys of one service: as recorded, else the default ones."""
        return self.keys_of_all([spider])[spider]

    def keys_of_all(self, spiders: Iterable[str]) -> dict[str, CrawlKeys]:
        """Return the keys of several services, in one round trip."""
        names = list(spiders)
        records = self.some(names)
        return {name: records[name].keys if name in records else CrawlKeys.for_spider(name) for name in names}


def keys_in(client: redis.Redis, spider: str) -> CrawlKeys:
    """Return the keys of a service in the fleet of this Redis: as its crawlers recorded them, else the default ones."""
    return CrawlRecords(client).keys_of(spider)


@lru_cache(maxsize=1024)
def crawl_record_of(name: str, raw: bytes) -> CrawlRecord:  # noqa: ARG001 - the form of what reads a field
    """Return the record of a service; cached, as frequent readers such as the exporter find the same line each time. Raises
    ValueError.
    """
    return CrawlRecord.from_json(raw)


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
