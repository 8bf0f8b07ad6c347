"""The database for commands that read it and must not create it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

from forums.storage import Database
from forums.storage.engine import sqlite_file
from redis_components.errors import TrawlError


class NoData(TrawlError):
    """There is no database yet; the message names the commands that make one."""


def existing(url: str | None = None) -> Database:
    """Return the database, not open. Raises NoData where there is none."""
    database = Database.from_url(url)
    file = sqlite_file(database.engine.url)
    if file and not file.exists():
        raise NoData(
            f"database {file} does not exist yet: crawl something first (trawl up, trawl seed), or name it in TRAWL_DATABASE_URL"
        )
    return database


@contextmanager
def stored_data(url: str | None = None) -> Iterator[Database]:
    """Yield the open database. Raises NoData where there is none, StorageError for older tables, or where it cannot be read."""
    database = existing(url)
    with closing(database.open(upgrade=False)):
        yield database
