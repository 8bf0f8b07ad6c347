"""Body of the task `store_items`: moves the item streams into the fleet's database. Each batch is read in place, checked,
upserted, committed, reported, and only then removed from its stream.

A writer may die at any instant. Before the commit nothing has changed; after it, and before settling, the next writer stores the
batch once more, without effect, because rows are upserted by their natural keys. So each item has its effect exactly once.

The hooks of the writer learn from stored items for the next scans: rates and gaps of forums, the known forums and the request
ledger, records of threads and marks of forums.
"""

from __future__ import annotations

import logging
import socket
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache, partial

import msgspec
import redis
from sqlalchemy import func, select

from fleet_operations.consumers import consume as loop
from fleet_operations.consumers.consume import Outcome, Sink, Stored
from fleet_operations.consumers.declared import streams_of
from forums import FORUM_DETAIL, FORUM_LIST
from forums.freshness import Observation, Rechecks, observe
from forums.records import FORUM_WRITER
from forums.records.stored import Check, Comment, Forum, InvalidItem, Item, Post, Scan
from forums.records.tasks_and_items import keep_marks, scan_task, task_of_scan
from forums.sites import SiteError, load_site
from forums.state import database_state
from forums.state.database_state import PublicationDelays, ThreadRecord, removed_sites
from forums.state.keys import ForumState, ForumStates, Ledger, Purpose, Spending
from forums.storage import Database, StorageError, parse, scans
from forums.storage.database import default_url, thread_record
from forums.storage.history import log_fleet_notes, prune, store_members
from forums.storage.write.changes import Written
from redis_components.admin.health import Problem
from redis_components.items.stream import ItemStream, new_token
from redis_components.keys import CrawlRecords, keys_in
from workers.state.registry import Registry
from workers.state.reports import Troubles

from .fleet_database import forget, opened

logger = logging.getLogger(__name__)

After = Callable[[Sequence[Item]], None]
"""A hook that is called with the items of each batch, in the stream's order, once they are committed and before they leave the
stream.

It may be called with the same items again, if the writer dies in between, so it has to be idempotent.
"""


@dataclass(kw_only=True)
class WriteReport(loop.Consumed):
    """Result of one drain; an item that came twice counts twice."""

    outcome: Outcome = Outcome.EMPTY


@dataclass(kw_only=True)
class _Batch:
    """Result for one batch."""

    refused: dict[int, str] = field(default_factory=dict)
    done: list[str] = field(default_factory=list)
    stored: list[Item] = field(default_factory=list)
    new: list[Item] = field(default_factory=list)  # stored posts and comments that were not in the database


class ForumSink(Sink):
    """Stores forum records in the (open) database, `batch` items per transaction.

    `after` is called with the stored items, then `arrived` with the posts and comments that were new. Redis's errors in `after`
    are raised: the batch comes again. Any other exception of `after` is logged, and the items leave the stream: they are stored,
    and a failing hook must not block later items.
    """

    def __init__(
        self, database: Database, *, batch: int = 1000, after: After | None = None, arrived: After | None = None
    ) -> None:
        self.batch = batch
        self._database, self._after, self._arrived = database, after, arrived

    def store(self, payloads: Sequence[bytes]) -> Stored:
        """Validate and store one batch; when this returns, it is committed. Raises StorageError, `redis.RedisError`."""
        last = _store(self._database, payloads)
        for hook, items in ((self._after, last.stored), (self._arrived, last.new)):
            if hook and items:
                _notify(hook, items)
        return Stored(last.refused, last.done)


def drain(
    stream: ItemStream,
    database: Database,
    *,
    batch: int = 1000,
    budget_s: float = 30.0,
    after: After | None = None,
    arrived: After | None = None,
) -> WriteReport:
    """Move the stream into the (open) database until it is empty or `budget_s` seconds are spent; at least one batch is moved.

    Raises StorageError when the database fails and `redis.RedisError` when Redis does: unsettled items are still in the stream.
    """
    started, token, report = time.monotonic(), new_token(), WriteReport()
    sink = ForumSink(database, batch=batch, after=after, arrived=arrived)
    try:
        report.outcome = loop.drain(stream, sink, token, report, lambda: time.monotonic() >= started + budget_s)
    finally:
        loop.unlock(stream, token)
    return report


def _store(database: Database, payloads: Sequence[bytes]) -> _Batch:
    batch = _Batch()
    good: list[tuple[int, Item]] = []
    for place, payload in enumerate(payloads):
        try:
            item = parse(payload)
        except InvalidItem as error:
            batch.refused[place] = str(error)
            if task := task_of_scan(payload):  # the scan has ended all the same: its forum must be seeded again
                batch.done.append(task)
        else:
            good.append((place, item))
    written = Written()
    refused = {one.place: one.reason for one in database.write([item for _, item in good], written)} if good else {}
    for number, (place, item) in enumerate(good):
        if number in refused:
            batch.refused[place] = refused[number]
        elif number not in written.dropped:
            batch.stored.append(item)
            if isinstance(item, Post | Comment) and (key := (type(item), item.site, item.id)) in written.new:
                batch.new.append(item)
                written.new.discard(key)  # of several states of one item the first
        if isinstance(item, Scan):
            batch.done.append(scan_task(item.site, item.forum_id, item.mode))
    return batch


def _notify(after: After, items: Sequence[Item]) -> None:
    try:
        after(items)
    except redis.RedisError:
        raise
    except Exception:
        logger.exception("a hook failed for %d stored items; the items themselves are stored", len(items))


MOST_FORUMS = 10_000
"""Limit of a site's forums from its index: each one costs every round of seeding, also the rounds of other sites."""
_PURPOSES = {"check": Purpose.CHECK, "backfill": Purpose.BACKFILL}


def learn(client: redis.Redis, items: Sequence[Item]) -> None:
    """Update the state of forums and budgets from these items. Called after their commit. Idempotent.

    Raises `redis.RedisError`; nothing is lost then, because the batch comes again.
    """
    scans = sorted((one for one in items if isinstance(one, Scan)), key=lambda scan: scan.started_at)
    forums = [one for one in items if isinstance(one, Forum)]
    states = ForumStates(client)
    of_forums = sorted((one for one in items if isinstance(one, Check) and one.forum_id), key=lambda check: check.walled)
    checked = {f"{one.site}/{one.forum_id}": one for one in of_forums if one.walled or one.last_page > 1}
    _learn_states(states, [scan for scan in scans if scan.mode != "back"], _within_bounds(client, states, forums), checked)
    checks = [_of_check(one) for one in items if isinstance(one, Check)]
    Ledger(client).add([*(_of_scan(one) for one in scans), *checks])


def _within_bounds(client: redis.Redis, states: ForumStates, forums: Sequence[Forum]) -> list[Forum]:
    """Return the forums without new ones above the limit of their site, which are reported as errors."""
    known = states.read(dict.fromkeys(map(_id, forums)))
    new = [one for one in forums if known[_id(one)].found_at is None]
    room = {site: MOST_FORUMS - len(states.raw_states(site)) for site in {one.site for one in new}}
    left_out: Counter[str] = Counter()
    for one in {_id(forum): forum for forum in new}.values():
        room[one.site] -= 1
        left_out[one.site] += room[one.site] < 0
    for site, number in left_out.items():
        if number:
            message = f"its index names more than {MOST_FORUMS:,} forums: {number:,} more are not watched; narrow [discover]"
            Registry(client).report_error(f"site {site}", message)
    full = {site for site, number in left_out.items() if number}
    return [one for one in forums if one.site not in full or known[_id(one)].found_at is not None]


def _learn_states(states: ForumStates, scans: Sequence[Scan], forums: Sequence[Forum], checked: Mapping[str, Check]) -> None:
    """Update the states from scans, from the index, and from a reading of a long thread of each forum in `checked`."""
    known = states.read(dict.fromkeys([*(f"{one.site}/{one.forum_id}" for one in scans), *map(_id, forums), *checked]))
    changed: dict[str, ForumState] = {}
    for forum in forums:
        before = changed.get(_id(forum)) or known[_id(forum)]
        seen = max(forum.fetched_at.timestamp(), before.found_at or 0.0)
        changed[_id(forum)] = msgspec.structs.replace(before, name=forum.name, found_at=seen)
    for scan in scans:
        name = f"{scan.site}/{scan.forum_id}"
        changed[name] = observe(changed.get(name) or known[name], observation(scan))
    for name, check in checked.items():
        wall = check.reason if check.walled else None
        changed[name] = msgspec.structs.replace(changed.get(name) or known[name], wall=wall)
    states.write({name: state for name, state in changed.items() if state != known[name]})


def observation(scan: Scan) -> Observation:
    """Convert a scan's report for the policy."""
    return Observation(
        at=scan.started_at.timestamp(),
        events=scan.new + scan.changed,
        threads=scan.threads,
        pages=scan.pages,
        mode="scan" if scan.mode == "recent" else scan.mode,
        outcome=scan.outcome,
        whole=scan.stopped == "end",
        newest_at=_epoch(scan.newest_at),
        oldest_at=_epoch(scan.oldest_at),
        reason=scan.reason,
    )


def _id(forum: Forum) -> str:
    return f"{forum.site}/{forum.id}"


def _epoch(moment: datetime | None) -> float | None:
    return None if moment is None else moment.timestamp()


def _of_scan(scan: Scan) -> Spending:
    purpose = {"backfill": Purpose.BACKFILL, "back": Purpose.CHECK}.get(scan.mode, Purpose.SCAN)
    name = f"{scan.forum_id} {scan.mode} {scan.started_at.timestamp():.3f}"
    return Spending(
        site=scan.site, name=name, purpose=purpose, ended_at=scan.finished_at.timestamp(), requests=max(1, scan.pages)
    )


def _of_check(check: Check) -> Spending:
    return Spending(
        site=check.site,
        name=f"thread {check.id} {check.started_at.timestamp():.3f}",
        purpose=_PURPOSES.get(check.mode, Purpose.DETAIL),
        ended_at=check.finished_at.timestamp(),
        requests=check.requests,
    )


def remember(client: redis.Redis, items: Sequence[Item]) -> None:
    """Store the records and marks that follow from these stored items. Idempotent.

    A refusal by Redis is logged and ignored: without a record a scan reads more and loses nothing.
    """
    try:
        database_state.keep(client, keys_in(client, FORUM_DETAIL), _records(items))
        keep_marks(client, keys_in(client, FORUM_LIST), [item for item in items if isinstance(item, Scan)])
    except redis.ResponseError as error:
        logger.warning("Redis does not keep what is stored of threads and forums, so that scans read more: %s", error)


def _records(items: Iterable[Item]) -> dict[str, ThreadRecord]:
    """Return the records of successful readings; failed ones leave the former record, but where the rest is not for guests."""
    return {
        f"{item.site}/{item.listed_as or item.id}": msgspec.structs.replace(
            thread_record(item),
            own=item.id if item.listed_as else None,
            asked=item.asked if item.gone else None,
            told_at=_told_at(item),
        )
        for item in items
        if isinstance(item, Check) and (item.reason is None or item.gone or item.walled)
    }


def _told_at(item: Check) -> int | None:
    """Return the start of a reading that saw more than its list row showed, or that had no list row."""
    more = item.listed is not None and item.reply_count is not None and item.listed > item.reply_count
    return int(item.started_at.timestamp()) if item.token is None or more else None


HISTORY_S = 7 * 86_400.0  # items older than this when stored are left out: a board was added, or a backfill runs


class Lateness:
    """Counts the delays of one database's new posts and comments."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._watched: dict[str, datetime] = {}  # site -> when its first scan began

    def count(self, client: redis.Redis, new: Sequence[Item], now: datetime | None = None) -> None:
        """Count these items, stored `now`. Items published before the first scan of their site are left out, since they could
        not be read in time.

        Raises `redis.RedisError`, StorageError.
        """
        stored_at, found = now or datetime.now(UTC), defaultdict[str, list[float]](list)
        for item in new:
            if not isinstance(item, Post | Comment) or item.created_at is None:
                continue
            late = max(0.0, (stored_at - item.created_at).total_seconds())
            since = self._since(item.site)
            if since is not None and item.created_at >= since and late < HISTORY_S:
                found[item.site].append(late)
        if found:
            PublicationDelays(client).add(found)

    def _since(self, site: str) -> datetime | None:
        if site not in self._watched:
            ((first,),) = self._database.stream(select(func.min(scans.c.started_at)).where(scans.c.site == site))
            if first is None:
                return None
            self._watched[site] = first if first.tzinfo else first.replace(tzinfo=UTC)
        return self._watched[site]


_lateness = lru_cache(maxsize=1)(Lateness)  # of the database that this process has open


def _rechecks(site: str) -> Rechecks:
    """Return the recheck policy of the site file; the default without a valid one, so that items are stored all the same."""
    try:
        schedule = load_site(site).schedule
    except SiteError:
        return Rechecks()
    return Rechecks(until_s=schedule.recheck_days * 86_400, min_interval_s=schedule.min_interval_s)


def store(client: redis.Redis, services: Iterable[str], *, budget_s: float = 10.0) -> dict[str, WriteReport]:
    """Drain the item streams of the forum writer, `budget_s` seconds each at most; no other stream is touched.

    `services` are those of the fleet; the rest of services that it does not name any more is drained, too. Raises StorageError;
    nothing is lost then.
    """
    url, services = default_url(), list(services)
    troubles, writer = Troubles(client), f"writer on {socket.gethostname()}"

    def after(items: Sequence[Item]) -> None:
        remember(client, items)
        learn(client, items)

    try:
        database = opened(client, url)
        database.rechecks, database.removed = _rechecks, partial(removed_sites, client)
        ours = streams_of(FORUM_WRITER, CrawlRecords(client).all(), services)
        streams = {service: ItemStream(client, keys) for service, keys in ours.items()}
        late = _lateness(database)
        reports = {
            service: drain(stream, database, budget_s=budget_s, after=after, arrived=lambda items: late.count(client, items))
            for service, stream in streams.items()
        }
        store_members(client, database)  # last, as the next ones: they must never keep items waiting
        log_fleet_notes(client, database)
        prune(database)
        troubles.report(writer, [])
        return reports
    except StorageError as error:
        forget(url)
        what = f"nothing is stored, items wait: {' '.join(str(error).split())}"
        troubles.report(writer, [Problem(what=what, fix="mend the database, or TRAWL_DATABASE_URL; trawl doctor")])
        raise
