"""Times in the database: aware UTC `datetime` on the Python side, for every kind of database on the other.

PostgreSQL has `TIMESTAMP WITH TIME ZONE`, MySQL and MariaDB `DATETIME(6)`, which holds UTC. SQLite has no type for times; there
they are text of one width, such as `2026-01-02T03:04:05.000000Z`: it sorts and compares as time does, SQLite's own date functions
read it, and so does a person with `sqlite3`. (An integer would save 19 bytes a row and be unreadable in every query.)
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import DateTime, Dialect, String
from sqlalchemy.dialects import mysql
from sqlalchemy.types import TypeDecorator, TypeEngine

_WIDTH = len("2026-01-02T03:04:05.000000Z")


@lru_cache(maxsize=10_000)  # all items of a page have one time, and most pages of a thread
def sqlite_text(moment: datetime | None) -> str | None:
    """A moment as SQLite has it. Raises ValueError for a naive one."""
    if moment is None:
        return None
    if moment.tzinfo is None:
        raise ValueError(f"the time {moment.isoformat()} has no time zone")
    return moment.astimezone(UTC).isoformat(timespec="microseconds")[: _WIDTH - 1] + "Z"  # instead of +00:00


@lru_cache(maxsize=10_000)
def from_sqlite(text: str | None) -> datetime | None:
    """The moment that `sqlite_text` wrote."""
    return None if text is None else datetime.fromisoformat(text)


@lru_cache(maxsize=10_000)
def mysql_moment(moment: datetime | None) -> datetime | None:
    """A moment as MySQL has it, without a zone. Raises ValueError for a naive one."""
    if moment is None:
        return None
    if moment.tzinfo is None:
        raise ValueError(f"the time {moment.isoformat()} has no time zone")
    return moment.astimezone(UTC).replace(tzinfo=None)


def from_mysql(moment: datetime | None) -> datetime | None:
    """The moment that `mysql_moment` made."""
    return None if moment is None else moment.replace(tzinfo=UTC)


class UtcDateTime(TypeDecorator[datetime]):
    """A moment. Takes aware datetimes of any zone, gives back UTC. A naive one is a ValueError: nobody knows when it was."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        own: dict[str, TypeEngine[Any]] = {"sqlite": String(_WIDTH), "mysql": mysql.DATETIME(fsp=6)}
        return dialect.type_descriptor(own.get(dialect.name, DateTime(timezone=True)))

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | str | None:
        if dialect.name == "sqlite":
            return sqlite_text(value)
        if dialect.name == "mysql":
            return mysql_moment(value)
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"the time {value.isoformat()} has no time zone")
        return value.astimezone(UTC)

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if dialect.name == "mysql":
            return from_mysql(value)
        moment = datetime.fromisoformat(value) if isinstance(value, str) else value
        return moment.astimezone(UTC)
