"""The database for those who only read it: they must not create one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager

from forums.storage.read.read_sql import limited
from redis_components.errors import TrawlError

from .database import Database
from .engine import sqlite_file


class NoData(TrawlError):
    """There is no database yet; the message names how there will be one."""


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
def stored_data(
    url: str | None = None, *, longest_s: float | None = None, gone: threading.Event | None = None
) -> Iterator[Database]:
    """Open the database. Raises NoData where there is none, StorageError where it cannot be read or its tables are older, and
    TakesTooLong where a statement takes more than `longest_s`, or its client is `gone`.
    """
    database = existing(url)
    with closing(database):
        if longest_s is None:
            yield database.open(upgrade=False)
            return
        with limited(database.engine, longest_s, gone):
            yield database.open(upgrade=False)
