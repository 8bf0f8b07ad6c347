"""Looking at a crawl from outside, in constant time, and the few acts of an operator on it. The exporter, `trawl status` and
the supervisor use this.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import redis

from . import filter_access
from .filter_access import false_positive_rate
from .holds import REQUESTS, parked_lots
from .keys import CrawlKeys
from .scripts import script
from .utils import bytes_to_str


@dataclass(frozen=True, kw_only=True)
class CrawlSnapshot:
    """Sizes of one spider's crawl at one moment."""

    spider: str
    start_tasks: int  # start tasks that wait, in all lanes
    backlog: int  # start tasks of a backfill that nobody may take yet
    thread_records: int  # threads of which is known what is stored
    start_tokens: int  # threads whose last start task was not carried out yet
    ready: int  # requests that wait
    leased: int  # requests some crawler works on
    leased_tasks: int  # start tasks that are becoming requests
    parked: int  # requests set aside, because their site is held
    parked_tasks: int  # start tasks, likewise
    dead: int  # requests and start tasks given up, kept with their reasons
    fingerprints: int  # entries of the dupefilter
    false_positive_rate: float  # of the dupefilter, by estimate: part of the new requests that it takes for seen
    items: int  # items that wait for the writer
    bad_items: int  # items the database refused
    owners: int  # crawler processes with a heartbeat
    acked: int  # requests finished, ever
    reclaimed: int  # leases taken back from dead owners, ever
    stats: dict[str, str]  # stats over all processes


def snapshot(client: redis.Redis, spider: str, keys: CrawlKeys | None = None) -> CrawlSnapshot:
    """The sizes of the crawl of `spider`, all of one moment, in one round trip."""
    keys = keys or CrawlKeys.for_spider(spider)
    waiting, ready, counters, dead, fingerprints, items, bad_items, owners, stats, (form, layers), known = script("snapshot")(
        client,
        {
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
            "more_keys": list(dict.fromkeys((*keys.more_start_urls, keys.later_tasks(), *keys.turn_keys, keys.later_turns()))),
        },
        {},
    )
    leased, leased_tasks, acked, reclaimed, parked, parked_tasks = (int(value or 0) for value in counters)
    return CrawlSnapshot(
        spider=spider,
        start_tasks=waiting,
        backlog=known[0],
        thread_records=known[1],
        start_tokens=known[2],
        ready=ready,
        leased=leased,
        leased_tasks=leased_tasks,
        parked=parked,
        parked_tasks=parked_tasks,
        dead=dead,
        fingerprints=fingerprints,
        false_positive_rate=false_positive_rate(bytes_to_str(form), bytes_to_str(layers)),
        items=items,
        bad_items=bad_items,
        owners=owners,
        acked=acked,
        reclaimed=reclaimed,
        stats={stats[i].decode(): stats[i + 1].decode("utf-8", "replace") for i in range(0, len(stats), 2)},
    )


def expire_owner(client: redis.Redis, keys: CrawlKeys, owner: str) -> bool:
    """Let an owner count as dead at once, because its process was seen to end; True if the frontier knew it.

    `owner` is the first name of the process; the names it took after being fenced end too.
    """
    return bool(script("expire_owner")(client, {"owners": keys.owners()}, {"owner": owner}))


def wipe(client: redis.Redis, keys: CrawlKeys, *, but_not_for: str, fingerprints: bool = True) -> str:
    """Delete a crawl's queue and dupefilter (without its `fingerprints`: only the queue), unless a live owner other than
    `but_not_for` works with them.

    The outcome is for people: "wiped", or "not done, ..." with the reason. An owner that joins meanwhile is seen. What is held
    stays held.
    """
    outcome = "wiped"
    seconds, micros = client.time()  # before the transaction, which keeps a connection to itself

    def delete(pipe: redis.client.Pipeline) -> None:
        nonlocal outcome
        now = seconds * 1000 + micros // 1000
        known: Any = pipe.zrange(keys.owners(), 0, 999, withscores=True)
        owners = {bytes_to_str(owner): expires for owner, expires in known}
        others = [owner for owner, expires in owners.items() if expires > now and owner != but_not_for]
        lots = parked_lots(pipe, keys)
        pipe.multi()
        if others:
            outcome = f"not done, {others[0]} is crawling with this queue"
            return
        leases = (keys.leases(owner) for owner in {*owners, but_not_for})
        requests = [lot for lot in lots if lot.startswith(REQUESTS)]
        parked = (keys.parked_lot(lot) for lot in requests)
        pipe.delete(keys.ready(), keys.owners(), keys.numbers(), keys.counters(), *parked, *leases)
        if requests:
            pipe.hdel(keys.parked(), *requests)
        if len(requests) < len(lots):  # start tasks stay, parked or not
            pipe.hset(keys.counters(), "parked_tasks", sum(n for lot, n in lots.items() if lot not in requests))
        if fingerprints:
            filter_access.begin_to_clear(pipe, keys.fingerprints())

    client.transaction(delete, keys.owners())
    if outcome == "wiped" and fingerprints:
        filter_access.clear(client, keys.fingerprints())
    return outcome
