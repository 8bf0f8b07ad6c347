"""Moves items and the history of crawlers into the database: the body of the task `store_items`.

It handles only services whose consumer is the forum writer (`item_consumers`).
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterable, Sequence

import redis

from forums.sites import SiteError, load_all, load_site
from forums.state.writer_figures import WriterCounts
from forums.storage import Database, Item, Rechecks, StorageError
from forums.storage.database import default_url
from redis_components.crawl_admin.item_stream import ItemStream
from redis_components.fleet.crawl_records import CrawlRecords
from redis_components.fleet.troubles import Troubles
from redis_components.server.health import Problem
from workers.process.item_consumers import FORUM_WRITER, streams_of

from .claim import claim
from .drain import WriteReport, drain
from .fleet_notes import log_fleet_notes
from .learn import learn
from .operator_state import keep_operator_state
from .prune_events import prune_events
from .published import Lateness
from .remember import remember
from .run_history import store_runs

logger = logging.getLogger(__name__)
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
