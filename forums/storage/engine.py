"""SQLAlchemy engines as Trawl needs them, one function per kind of database. Nothing here connects.

SQLite: WAL, so that readers and the writer do not wait for each other. `synchronous=FULL`: rows leave Redis
once they are committed, so a power cut must not take a commit back (NORMAL stores about a fifth more rows per second, and may).
Transactions that write begin with `BEGIN IMMEDIATE`, because one that turns into a writing one half-way fails at once where it
should wait.

MySQL and MariaDB: READ COMMITTED, as PostgreSQL has it, because with their default two writers lock gaps between rows against
each other; UTC and strict mode, also where the server's are others; one collation for all texts (`column_types.py`).
"""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, CursorResult, Engine, create_engine, event

from workers.consumers.mysql_dialect import CONNECT_ARGS, DRIVER, collation, has_other_driver, is_mysql

LOCK_WAIT_S = 10.0  # SQLite: wait so long for another process's write lock; `?timeout=` in the URL overrides it
CONNECT_S = 10  # PostgreSQL, MySQL: give up connecting after this; `?connect_timeout=` in the URL overrides it
_CACHE_KIB = 32_768  # SQLite, per connection: a transaction's pages should fit; with the default (2 MiB) some are written twice
_WAL_PAGES = 8_192  # SQLite: move the log into the file each 32 MiB, each page once; the default is less than one transaction
KINDS = ("sqlite", "postgresql", "mysql", "mariadb")
_NET_WRITE_S = 86_400  # MySQL: an export that pauses (`trawl export | less`) is not cut off after a minute
WRITING = {"trawl_begin": "BEGIN IMMEDIATE"}  # execution options of a connection that is going to write


def build(url: URL) -> Engine:
    """The engine for `url`, which is of one of `KINDS`. Raises what SQLAlchemy raises for a driver that is not there."""
    match url.get_backend_name():
        case "sqlite":
            return _sqlite(url)
        case "mysql" | "mariadb":
            return _mysql(url.set(drivername=DRIVER))
        case _:
            return _postgresql(url)


def other_mysql_driver(url: URL) -> bool:
    """Whether the URL names a driver of MySQL that is not the one that is used."""
    return is_mysql(url) and has_other_driver(url)


def sqlite_file(url: URL) -> Path | None:
    """The file that holds the database, or None: another kind of database, in memory, or an SQLite URI (`file:…?uri=true`)."""
    name = url.database
    if url.get_backend_name() != "sqlite" or not name or name == ":memory:" or name.startswith("file:"):
        return None
    return Path(name)


def in_memory(url: URL) -> bool:
    """Whether SQLite keeps the database in the memory of the process that opens it."""
    name = url.database or ""
    return url.get_backend_name() == "sqlite" and (not name or ":memory:" in name)


def file_identity(url: URL) -> tuple[int, int] | None:
    """What tells the database's file from another one at the same place; None when there is no file."""
    path = sqlite_file(url)
    if path is None or not path.exists():
        return None
    found = path.stat()
    return found.st_dev, found.st_ino


def leave_unread(connection: Connection, rows: CursorResult[Any]) -> None:
    """Give up the rest of the rows. MySQL sends them all and its driver reads them all before it closes a cursor, so there the
    connection is closed.
    """
    if connection.dialect.name == "mysql":
        unread: Any = getattr(rows.cursor, "_result", None)
        if unread is not None:
            unread.unbuffered_active = False
        connection.invalidate()


def _sqlite(url: URL) -> Engine:
    engine = create_engine(url, connect_args={} if "timeout" in url.query else {"timeout": LOCK_WAIT_S})

    @event.listens_for(engine, "connect")
    def _configure(connection: Any, _record: object) -> None:
        connection.isolation_level = None  # the driver must not begin transactions: `_begin` does
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
    """Switch the file to WAL once; it remembers. SQLite does not wait for locks in the switch, so this does."""
    deadline = time.monotonic() + LOCK_WAIT_S
    while True:
        try:
            if cursor.execute("PRAGMA journal_mode").fetchone()[0] not in ("wal", "memory"):
                cursor.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            code = error.sqlite_errorcode & 0xFF
            if code == sqlite3.SQLITE_READONLY:
                return  # good enough for an export; the first write says what is wrong
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
        paramstyle="format",  # by their places: less work for each row than by their names
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
