"""Body of the task `store_items`: claims the database for the fleet, and drains the item streams into it.

One fleet, one database: a writer with another one stores nothing.

The operators' state survives a Redis that lost everything: it is copied into the database when it changes, and put back when it
is gone, without a question. To crawl a site that was paused is worse than to bring back a size that was flushed on purpose, and
the fleet's errors name what was put back.
"""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

import redis

from forums.environment import Events
from forums.records import FORUM_WRITER
from forums.sites import SiteError, load_all, load_site
from forums.state.database_identity import DatabaseClaim
from forums.state.writer_figures import WriterCounts
from forums.storage import Database, Item, Rechecks, StorageError
from forums.storage.database import default_url
from forums.storage.engine import FILE_OF, place_of
from forums.storage.history import read_operator_state, write_operator_state
from forums.storage.read.event_reader import EventLog
from redis_components.admin.crawl_records import CrawlRecords
from redis_components.items.stream import ItemStream
from redis_components.server.health import Problem
from redis_components.server.names import fleet_namespace
from workers.backup.operator_state import DEAD, Found, look, mark_copied, put_back
from workers.consumers.item_consumers import streams_of
from workers.state.registry import Registry
from workers.state.troubles import Troubles

from .drain import WriteReport, drain
from .learn import Lateness, learn, remember
from .run_history import log_fleet_notes, store_runs


class AnotherDatabase(StorageError):
    """This process has another database than its fleet; the message names the variable and the value that it needs."""


def claim(client: redis.Redis, database: Database) -> None:
    """Claim the database for the fleet. Raises AnotherDatabase; then nothing was made or changed in it."""
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

logger = logging.getLogger(__name__)


def prune_events(database: Database) -> None:
    """Drop old events, at most once in ten minutes. Raises StorageError, and ConfigError for a wrong TRAWL_EVENTS_DAYS."""
    now = time.monotonic()
    if now >= _next.get(database.name, 0.0):
        _next[database.name] = now + _EVERY_S
        if dropped := EventLog(database).prune(Events.read().events_days):
            logger.info("%s: the events of %d transactions were older than TRAWL_EVENTS_DAYS", database.name, dropped)


def keep_operator_state(client: redis.Redis, database: Database, services: Sequence[str]) -> None:
    """Copy the state into the database if it changed; restore it if Redis has lost it.

    Raises StorageError, `redis.RedisError`. Safe to run concurrently: existing values are never overwritten.
    """
    found = look(client, services)
    if found.marked:
        _copy(database, found)
        return
    now = datetime.now(UTC).isoformat(timespec="seconds")
    kept = read_operator_state(database, fleet_namespace())
    if not kept:
        _copy(database, found)
        mark_copied(client, now)
        return
    if parts := put_back(client, services, kept, now):
        what = f"Redis had lost the operators' state; put back from the database: {', '.join(parts)}"
        if lost := kept.get(DEAD):
            what += f"; dead letters are gone: {', '.join(f'{service} {number}' for service, number in sorted(lost.items()))}"
        logger.error("%s", what)
        Registry(client).report_error("operator's state", what)


def _copy(database: Database, found: Found) -> None:
    # Compared with the database, not with this process's memory: other processes of the worker write, too.
    if read_operator_state(database, fleet_namespace()) != found.state:
        write_operator_state(database, fleet_namespace(), found.state)


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


def _count(client: redis.Redis, reports: Iterable[WriteReport]) -> None:
    """Add the reports to the counters of `/metrics`."""
    for one in reports:
        if one.batches:
            WriterCounts(client).add(one.changes, batches=one.batches, items=one.items, seconds=one.seconds)


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
        _count(client, reports.values())
        prune_events(database)
        store_runs(client, database)  # last, as the next two: they must never keep items waiting
        log_fleet_notes(client, database)
        keep_operator_state(client, database, services)
        troubles.report(writer, [])
        return reports
    except StorageError as error:
        forget(url)
        what = f"nothing is stored, items wait: {' '.join(str(error).split())}"
        troubles.report(writer, [Problem(what=what, fix="mend the database, or TRAWL_DATABASE_URL; trawl doctor")])
        raise
