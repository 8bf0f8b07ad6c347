"""Types of columns, and typed Core tables: SQLAlchemy's own since 2.1, and here for 2.0.

Times in the database: aware UTC `datetime` in Python, and the native type of each kind of database.
PostgreSQL has `TIMESTAMP WITH TIME ZONE`, MySQL and MariaDB `DATETIME(6)`, which holds UTC. SQLite has no type for times; there
they are text of one width, such as `2026-01-02T03:04:05.000000Z`: it sorts and compares as time does, and SQLite's own date
functions and people with `sqlite3` can read it. (An integer would save 19 bytes a row and be unreadable in every query.)
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import sqlalchemy
from sqlalchemy import DateTime, Dialect, String, Text
from sqlalchemy.dialects import mysql, postgresql
from sqlalchemy.types import TypeDecorator, TypeEngine

from workers.consumers.mysql_dialect import LongText, Varchar

_WIDTH = len("2026-01-02T03:04:05.000000Z")


@lru_cache(maxsize=10_000)  # all items of a page have one time, and most pages of a thread
def sqlite_text(moment: datetime | None) -> str | None:
    """Format a time for SQLite. Raises ValueError for a naive one."""
    if moment is None:
        return None
    if moment.tzinfo is None:
        raise ValueError(f"the time {moment.isoformat()} has no time zone")
    return moment.astimezone(UTC).isoformat(timespec="microseconds")[: _WIDTH - 1] + "Z"  # instead of +00:00


@lru_cache(maxsize=10_000)
def from_sqlite(text: str | None) -> datetime | None:
    """Parse a time that `sqlite_text` wrote."""
    return None if text is None else datetime.fromisoformat(text)


@lru_cache(maxsize=10_000)
def mysql_moment(moment: datetime | None) -> datetime | None:
    """Convert a time for MySQL, without a zone. Raises ValueError for a naive one."""
    if moment is None:
        return None
    if moment.tzinfo is None:
        raise ValueError(f"the time {moment.isoformat()} has no time zone")
    return moment.astimezone(UTC).replace(tzinfo=None)


def from_mysql(moment: datetime | None) -> datetime | None:
    """Convert a time that `mysql_moment` made."""
    return None if moment is None else moment.replace(tzinfo=UTC)


class UtcDateTime(TypeDecorator[datetime]):
    """A time. Accepts aware datetimes of any zone, returns UTC. Raises ValueError for a naive one, whose time is ambiguous."""

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


_NAME_CHARS = 255  # in MySQL at most 1,020 bytes: three of them fit into an index row, with any ids
_WORD_CHARS = 64

# Names and ids sort by their bytes, as in SQLite: a locale's order is slower, differs between machines, and a new version of the
# C library that changes it corrupts PostgreSQL's indexes.
_BYTES = Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")

# The migration scripts use these types, too. They must not change: a script must build the same tables forever.
NAME: TypeEngine[str] = _BYTES.with_variant(Varchar(_NAME_CHARS), "mysql")
"""A name or an id."""
SHORT_NAME: TypeEngine[str] = _BYTES.with_variant(Varchar(_WORD_CHARS), "mysql")
"""A part of a key: an enumeration value of Trawl, or a hash."""
TEXT: TypeEngine[str] = Text().with_variant(LongText(), "mysql")
"""Any text without an index."""
WORD: TypeEngine[str] = Text().with_variant(Varchar(_WORD_CHARS), "mysql")
"""An enumeration value of Trawl, in a column with a default: MySQL has no defaults for long texts."""


if TYPE_CHECKING or hasattr(sqlalchemy, "TypedColumns"):
    from sqlalchemy import Named as Named
    from sqlalchemy import Table as Table
    from sqlalchemy import TypedColumns as TypedColumns
else:
    Named = Any

    class TypedColumns:
        """Columns of a table by their names; an annotation with None makes one nullable."""

    def Table(name: str, metadata: sqlalchemy.MetaData, columns: type, **options: Any) -> sqlalchemy.Table:  # noqa: N802
        """Return the table with the columns of a class."""
        found = {key: one for key, one in vars(columns).items() if isinstance(one, sqlalchemy.Column)}
        for key, column in found.items():
            column.name = column.key = key
            column.nullable = not column.primary_key and "None" in columns.__annotations__[key]
        return sqlalchemy.Table(name, metadata, *found.values(), **options)
