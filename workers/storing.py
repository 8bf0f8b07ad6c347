"""Moving the items of every service, and the history of its crawlers, into the database: the body of the task `store_items`."""

from __future__ import annotations

from collections.abc import Iterable

import redis

from redis_components.items import ItemStream
from redis_components.keys import CrawlKeys

from .history import store_runs
from .remembering import remember
from .storage import Database, StorageError
from .storage.database import default_url
from .writer import WriteReport, drain

_databases: dict[str, Database] = {}  # of this process: opening one costs more than a small batch


def store(client: redis.Redis, services: Iterable[str], *, budget_s: float = 10.0) -> dict[str, WriteReport]:
    """Drain the item streams of `services`, `budget_s` seconds each at most. Raises StorageError; nothing is lost then."""
    url = default_url()
    try:
        database = _databases.get(url) or _databases.setdefault(url, Database.from_url(url).open())
        streams = {service: ItemStream(client, CrawlKeys.for_spider(service)) for service in services}
        reports = {
            service: drain(stream, database, budget_s=budget_s, after=lambda items: remember(client, items))
            for service, stream in streams.items()
        }
        store_runs(client, database)  # last: it must never keep items waiting
        return reports
    except StorageError:
        if broken := _databases.pop(url, None):  # look at it afresh next time: it may have been moved or restored
            broken.close()
        raise
