"""Moving the items of every service, and the history of its crawlers, into the database: the body of the task `store_items`."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

import redis

from redis_components.database_note import ANOTHER_DATABASE, DatabaseNote
from redis_components.items import ItemStream
from redis_components.keys import CrawlKeys

from .history import store_runs
from .learning import learn
from .remembering import remember
from .sites import SiteError, load_all, load_site
from .storage import Database, Item, Rechecks, StorageError
from .storage.database import default_url
from .writer import WriteReport, drain

logger = logging.getLogger(__name__)
_databases: dict[str, Database] = {}  # of this process: opening one costs more than a small batch


def opened(url: str) -> Database:
    """The database at `url`, kept open for the next task of this process. Raises StorageError."""
    if known := _databases.get(url):
        return known
    database = Database.from_url(url).open()
    database.rechecks = _rechecks
    sites, _wrong = load_all()
    database.describe_sites({site.name: (site.profile, str(site.base_url)) for site in sites})
    return _databases.setdefault(url, database)


def _rechecks(site: str) -> Rechecks:
    """As the site file says; one that is gone or wrong must not keep its items out of the database."""
    try:
        schedule = load_site(site).schedule
    except SiteError:
        return Rechecks()
    return Rechecks(until_s=schedule.recheck_days * 86_400, min_interval_s=schedule.min_interval_s)


def forget(url: str) -> None:
    """Open the database afresh next time: it may have been moved or restored."""
    if broken := _databases.pop(url, None):
        broken.close()


def store(client: redis.Redis, services: Iterable[str], *, budget_s: float = 10.0) -> dict[str, WriteReport]:
    """Drain the item streams of `services`, `budget_s` seconds each at most. Raises StorageError; nothing is lost then."""
    url = default_url()

    def after(items: Sequence[Item]) -> None:
        remember(client, items)
        learn(client, items)

    try:
        database = opened(url)
        if (identity := database.identity()) and DatabaseNote(client).tell(identity):
            logger.warning("%s: %s", database.name, ANOTHER_DATABASE)
        streams = {service: ItemStream(client, CrawlKeys.for_spider(service)) for service in services}
        reports = {service: drain(stream, database, budget_s=budget_s, after=after) for service, stream in streams.items()}
        store_runs(client, database)  # last: it must never keep items waiting
        return reports
    except StorageError:
        forget(url)
        raise
