"""Body of the task `store_items`: claims the database for the fleet, and drains the item streams into it.

One fleet, one database: a writer with another one stores nothing.

The hooks of the writer learn from stored items for the next scans: rates and gaps of forums, the known forums and the request
ledger, records of threads and marks of forums.
"""

from __future__ import annotations

import logging
import socket
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

import msgspec
import redis
from sqlalchemy import func, select

from forums import FORUM_DETAIL, FORUM_LIST
from forums.environment import Events
from forums.freshness import Observation, observe
from forums.records import FORUM_WRITER
from forums.records.tasks_and_items import keep_marks
from forums.sites import SiteError, load_all, load_site
from forums.state import database_state
from forums.state.database_state import DatabaseClaim, PublicationDelays, ThreadRecord, removed_sites
from forums.state.forum_states import ForumState, ForumStates, Ledger, Purpose, Spending
from forums.storage import Check, Comment, Database, Forum, Item, Post, Rechecks, Scan, StorageError, scans
from forums.storage.database import default_url
from forums.storage.engine import FILE_OF, place_of
from forums.storage.history import log_fleet_notes, store_members
from forums.storage.read.event_reader import EventLog
from forums.storage.write.reports import thread_record
from redis_components.admin.health import Problem
from redis_components.admin.inspector import CrawlRecords, keys_in
from redis_components.items.stream import ItemStream
from workers.consumers.targets import streams_of
from workers.state.registry import Registry
from workers.state.reports import Troubles

from .drain import WriteReport, drain

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


logger = logging.getLogger(__name__)


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


class AnotherDatabase(StorageError):
    """This process has another database than its fleet; the message names the variable and the value that it needs."""


def claim(client: redis.Redis, database: Database) -> None:
    """Claim the database for the fleet. Raises AnotherDatabase; then nothing was made or changed in it."""
    if DatabaseClaim(client).holder() is None:
        database.recall(client)
    if (theirs := DatabaseClaim(client).take(database.found_identity() or "", place_of(database.engine.url))) is not None:
        raise _another(database, theirs)


def check_claim(client: redis.Redis, database: Database) -> None:
    """Raise AnotherDatabase if the fleet has claimed another one; claims nothing itself."""
    holder = DatabaseClaim(client).holder()
    if holder is not None and database.found_identity() != holder[0]:
        raise _another(database, holder[1])


def _another(database: Database, theirs: str) -> AnotherDatabase:
    which = theirs or "the one that items were stored in before"
    file = "; a file serves one machine: several need a PostgreSQL or MySQL" if FILE_OF in theirs else ""
    return AnotherDatabase(
        f"this fleet stores into {which}, so nothing is stored in {place_of(database.engine.url)}: set TRAWL_DATABASE_URL to"
        f" the fleet's database{file}; or make this one the fleet's, on purpose: trawl db move"
    )


_EVERY_S = 600.0
_next: dict[str, float] = {}  # by database: time of the next pruning in this process, by its monotonic clock


def prune_events(database: Database) -> None:
    """Drop old events, at most once in ten minutes. Raises StorageError, and ConfigError for a wrong TRAWL_EVENTS_DAYS."""
    now = time.monotonic()
    if now >= _next.get(database.name, 0.0):
        _next[database.name] = now + _EVERY_S
        if dropped := EventLog(database).prune(Events.read().events_days):
            logger.info("%s: the events of %d transactions were older than TRAWL_EVENTS_DAYS", database.name, dropped)


_lateness: dict[str, Lateness] = {}
_databases: dict[str, Database] = {}  # of this process: opening a database costs more than a small batch


def opened(client: redis.Redis, url: str) -> Database:
    """Return the fleet's database at `url`, kept open for the next task of this process. Raises StorageError."""
    if known := _databases.get(url):
        claim(client, known)
        return known
    database = Database.from_url(url)
    try:
        claim(client, database)
        claim(client, database.open())  # another writer may have been faster, where both found no tables
    except StorageError:
        database.close()
        raise
    database.rechecks = _rechecks
    database.removed = lambda: removed_sites(client)
    sites, _wrong = load_all()
    database.describe_sites({site.name: (site.profile, str(site.base_url)) for site in sites})
    return _databases.setdefault(url, database)


def _rechecks(site: str) -> Rechecks:
    """Return the recheck policy of the site file; the default without a valid one, so that items are stored all the same."""
    try:
        schedule = load_site(site).schedule
    except SiteError:
        return Rechecks()
    return Rechecks(until_s=schedule.recheck_days * 86_400, min_interval_s=schedule.min_interval_s)


def forget(url: str) -> None:
    """Close the database, so that the next task opens it again: it may have been moved or restored."""
    _lateness.pop(url, None)
    if broken := _databases.pop(url, None):
        broken.close()


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
        ours = streams_of(FORUM_WRITER, CrawlRecords(client).all(), services)
        streams = {service: ItemStream(client, keys) for service, keys in ours.items()}
        late = _lateness.setdefault(url, Lateness(database))
        reports = {
            service: drain(stream, database, budget_s=budget_s, after=after, arrived=lambda items: late.count(client, items))
            for service, stream in streams.items()
        }
        prune_events(database)
        store_members(client, database)  # last, as the next one: they must never keep items waiting
        log_fleet_notes(client, database)
        troubles.report(writer, [])
        return reports
    except StorageError as error:
        forget(url)
        what = f"nothing is stored, items wait: {' '.join(str(error).split())}"
        troubles.report(writer, [Problem(what=what, fix="mend the database, or TRAWL_DATABASE_URL; trawl doctor")])
        raise
