"""The database for commands that read it: they must not create one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

from forums.storage import Database
from forums.storage.engine import sqlite_file
from redis_components.errors import TrawlError


class NoData(TrawlError):
    """There is no database yet; the message says how there will be one."""


def existing(url: str | None = None) -> Database:
    """The database, not open. Raises NoData where there is none."""
    database = Database.from_url(url)
    file = sqlite_file(database.engine.url)
    if file and not file.exists():
        raise NoData(
            f"database {file} does not exist yet: crawl something first (trawl up, trawl seed), or name it in TRAWL_DATABASE_URL"
        )
    return database


@contextmanager
def stored_data(url: str | None = None) -> Iterator[Database]:
    """The open database. Raises NoData where there is none, StorageError where it cannot be read or its tables are older."""
    database = existing(url)
    with closing(database.open(upgrade=False)):
        yield database
