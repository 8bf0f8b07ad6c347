"""Moving the items of every service, and the history of its crawlers, into the database: the body of the task `store_items`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import redis

from redis_components.items import ItemStream
from redis_components.keys import CrawlKeys

from .history import store_runs
from .learning import learn
from .remembering import remember
from .storage import Database, Item, StorageError
from .storage.database import default_url
from .writer import WriteReport, drain

_databases: dict[str, Database] = {}  # of this process: opening one costs more than a small batch


def opened(url: str) -> Database:
    """The database at `url`, kept open for the next task of this process. Raises StorageError."""
    return _databases.get(url) or _databases.setdefault(url, Database.from_url(url).open())


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
        streams = {service: ItemStream(client, CrawlKeys.for_spider(service)) for service in services}
        reports = {service: drain(stream, database, budget_s=budget_s, after=after) for service, stream in streams.items()}
        store_runs(client, database)  # last: it must never keep items waiting
        return reports
    except StorageError:
        forget(url)
        raise
