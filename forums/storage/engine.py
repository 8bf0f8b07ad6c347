"""SQLAlchemy engines, one function per kind of database, their times, and the look-up of many ids in one query. Nothing here
connects.

SQLite: WAL, so that readers and the writer do not wait for each other. `synchronous=FULL`: rows leave Redis once they are
committed, so a power cut must not take a commit back (NORMAL stores about a fifth more rows per second, and may). Transactions
that write begin with `BEGIN IMMEDIATE`: one that begins by reading fails at its first write where it should wait.

MySQL and MariaDB: READ COMMITTED, as in PostgreSQL, because with their default two writers lock gaps between rows against each
other; UTC and strict mode, also where the server's are others; one collation for all texts (`dialects.py`).

Times in the database: aware UTC `datetime` in Python, and the native type of each kind of database.
PostgreSQL has `TIMESTAMP WITH TIME ZONE`, MySQL and MariaDB `DATETIME(6)`, which holds UTC. SQLite has no type for times; there
they are text of one width, such as `2026-01-02T03:04:05.000000Z`: it sorts and compares as time does, and SQLite's own date
functions and people with `sqlite3` can read it. (An integer would save 19 bytes a row and be unreadable in every query.)
"""

from __future__ import annotations

import socket
import sqlite3
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import (
    URL,
    Column,
    ColumnElement,
    Connection,
    DateTime,
    Dialect,
    Engine,
    Row,
    Select,
    String,
    and_,
    bindparam,
    create_engine,
    event,
)
from sqlalchemy.dialects import mysql
from sqlalchemy.types import TypeDecorator, TypeEngine

from fleet_operations.consumers.mysql_dialect import CONNECT_ARGS, DRIVER, collation, most_bytes, sent_bytes, why_too_large
from forums.records.stored import Item

_WIDTH = len("2026-01-02T03:04:05.000000Z")


def _utc(moment: datetime) -> datetime:
    if moment.tzinfo is None:
        raise ValueError(f"the time {moment.isoformat()} has no time zone")
    return moment.astimezone(UTC)


@lru_cache(maxsize=10_000)  # all items of a page have one time, and most pages of a thread
def sqlite_text(moment: datetime | None) -> str | None:
    """Format a time for SQLite. Raises ValueError for a naive one."""
    return None if moment is None else _utc(moment).isoformat(timespec="microseconds")[: _WIDTH - 1] + "Z"  # instead of +00:00


@lru_cache(maxsize=10_000)
def from_sqlite(text: str | None) -> datetime | None:
    """Parse a time that `sqlite_text` wrote."""
    return None if text is None else datetime.fromisoformat(text)


@lru_cache(maxsize=10_000)
def mysql_moment(moment: datetime | None) -> datetime | None:
    """Convert a time for MySQL, without a zone. Raises ValueError for a naive one."""
    return None if moment is None else _utc(moment).replace(tzinfo=None)


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
        return None if value is None else _utc(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if dialect.name == "mysql":
            return from_mysql(value)
        moment = datetime.fromisoformat(value) if isinstance(value, str) else value
        return moment.astimezone(UTC)


_AT_ONCE = 10_000  # ids in one statement: SQLite and PostgreSQL limit its parameters


def keyed(column: Column[str]) -> ColumnElement[bool]:
    """Return the condition for `rows_by_key`, with an id in this column."""
    return and_(column.table.c.site == bindparam("site"), column.in_(bindparam("among", expanding=True)))


def rows_by_key(
    connection: Connection, query: Select[*tuple[Any, ...]], keys: Iterable[tuple[str, str]], **given: Any
) -> Iterator[tuple[str, Row[*tuple[Any, ...]]]]:
    """Yield site and row of a query that is `keyed`, for all keys (site, id); `given`: its other parameters."""
    by_site: dict[str, dict[str, None]] = defaultdict(dict)
    for site, id_ in keys:
        by_site[site][id_] = None
    for site, ids in by_site.items():
        names = list(ids)
        for start in range(0, len(names), _AT_ONCE):
            for row in connection.execute(query, {"site": site, "among": names[start : start + _AT_ONCE], **given}):
                yield site, row


def too_large(connection: Connection, items: Sequence[Item]) -> dict[int, str]:
    """Return the reasons of items that are too large to send, by index; empty for databases without a limit."""
    if connection.dialect.name != "mysql":
        return {}
    most = most_bytes(connection)
    sizes = (sent_bytes((getattr(item, name) for name in item.__struct_fields__), most) for item in items)
    return {place: why_too_large(size, most) for place, size in enumerate(sizes) if size > most}


LOCK_WAIT_S = 10.0  # SQLite: wait for another process's write lock; `?timeout=` in the URL overrides it
CONNECT_S = 10  # PostgreSQL, MySQL: time-out of connecting; `?connect_timeout=` in the URL overrides it
_CACHE_KIB = 32_768  # SQLite, per connection: a transaction's pages should fit; with the default (2 MiB) some are written twice
_WAL_PAGES = 8_192  # SQLite: move the log into the file each 32 MiB, each page once; the default is less than one transaction
KINDS = ("sqlite", "postgresql", "mysql", "mariadb")
_NET_WRITE_S = 86_400  # MySQL: an export that pauses (`trawl export | less`) is not cut off after a minute
FILE_OF = " on host "
WRITING = {"trawl_begin": "BEGIN IMMEDIATE"}  # execution options of a connection that will write


def build(url: URL) -> Engine:
    """Return the engine for `url`, which is of one of `KINDS`. Raises SQLAlchemy's error for a missing driver."""
    match url.get_backend_name():
        case "sqlite":
            return _sqlite(url)
        case "mysql" | "mariadb":
            return _mysql(url.set(drivername=DRIVER))
        case _:
            return _postgresql(url)


def sqlite_file(url: URL) -> Path | None:
    """Return the database's file, or None for another kind of database, SQLite in memory, or an SQLite URI
    (`file:…?uri=true`).
    """
    name = url.database
    if url.get_backend_name() != "sqlite" or not name or name == ":memory:" or name.startswith("file:"):
        return None
    return Path(name)


def in_memory(url: URL) -> bool:
    """Return True if it is an SQLite database in memory."""
    name = url.database or ""
    return url.get_backend_name() == "sqlite" and (not name or ":memory:" in name)


def file_identity(url: URL) -> tuple[int, int] | None:
    """Return device and inode of the database's file; None if there is no file."""
    path = sqlite_file(url)
    if path is None or not path.exists():
        return None
    found = path.stat()
    return found.st_dev, found.st_ino


def place_of(url: URL) -> str:
    """Return where the database is, for people on any machine: without user and password, an SQLite file with its host."""
    if url.get_backend_name() == "sqlite":
        path = sqlite_file(url)
        return f"{path.absolute() if path else url.database}{FILE_OF}{socket.gethostname()}"
    hosts = url.host or ",".join(map(str, [url.query.get("host", "localhost")]))
    return f"{url.get_backend_name()}://{hosts}{f':{url.port}' if url.port else ''}/{url.database or ''}"


def reading_only(url: URL) -> URL:
    """Return the URL of an SQLite file as SQLite opens it for reading alone; any other URL as it is."""
    if path := sqlite_file(url):
        url = url.set(database=f"file:{quote(str(path.absolute()))}")
    elif url.get_backend_name() != "sqlite" or in_memory(url):
        return url
    return url.update_query_dict({"uri": "true", "mode": "ro"})


def leave_unread(connection: Connection, cursor: Any) -> None:
    """Discard the remaining rows. MySQL's driver reads all rows before it closes a cursor, so there the connection is closed."""
    if connection.dialect.name == "mysql":
        unread: Any = getattr(cursor, "_result", None)
        if unread is not None:
            unread.unbuffered_active = False
        connection.invalidate()


def _sqlite(url: URL) -> Engine:
    engine = create_engine(url, connect_args={} if "timeout" in url.query else {"timeout": LOCK_WAIT_S})

    @event.listens_for(engine, "connect")
    def _configure(connection: Any, _record: object) -> None:
        connection.isolation_level = None  # `_begin` begins transactions, not the driver
        cursor = connection.cursor()
        _into_wal(cursor)
        cursor.execute("PRAGMA synchronous = FULL")
        cursor.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        cursor.execute(f"PRAGMA wal_autocheckpoint = {_WAL_PAGES}")
        cursor.close()

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        connection.exec_driver_sql(connection.get_execution_options().get("trawl_begin", "BEGIN"))

    return engine


def _into_wal(cursor: sqlite3.Cursor) -> None:
    """Switch the file to WAL, which is persistent. SQLite does not wait for locks in the switch, so this function retries."""
    deadline = time.monotonic() + LOCK_WAIT_S
    while True:
        try:
            if cursor.execute("PRAGMA journal_mode").fetchone()[0] not in ("wal", "memory"):
                cursor.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            code = error.sqlite_errorcode & 0xFF
            if code == sqlite3.SQLITE_READONLY:
                return  # good enough for an export; the first write raises a clear error
            if code not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            return


def _postgresql(url: URL) -> Engine:
    defaults = {"connect_timeout": CONNECT_S, "application_name": "trawl"}
    # pre_ping: after a restart of the server the first use finds the dead connection and makes a new one.
    return create_engine(
        url, pool_pre_ping=True, connect_args={name: value for name, value in defaults.items() if name not in url.query}
    )


def _mysql(url: URL) -> Engine:
    defaults = {"connect_timeout": CONNECT_S, "program_name": "trawl"}
    engine = create_engine(
        url.difference_update_query(CONNECT_ARGS),
        pool_pre_ping=True,
        isolation_level="READ COMMITTED",
        paramstyle="format",  # by position: less work for each row than by name
        connect_args=CONNECT_ARGS | {name: value for name, value in defaults.items() if name not in url.query},
    )

    @event.listens_for(engine, "connect")
    def _configure(connection: Any, _record: object) -> None:
        name = collation(is_mariadb="MariaDB" in connection.get_server_info())
        with connection.cursor() as cursor:
            cursor.execute(
                f"SET NAMES utf8mb4 COLLATE {name}, time_zone = '+00:00', default_storage_engine = InnoDB,"
                f" net_write_timeout = {_NET_WRITE_S}"
            )

    return engine
