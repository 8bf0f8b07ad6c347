"""SQLAlchemy engines, one function per kind of database, and the look-up of many ids with one parameter. Nothing here connects.

SQLite: WAL, so that readers and the writer do not wait for each other. `synchronous=FULL`: rows leave Redis once they are
committed, so a power cut must not take a commit back (NORMAL stores about a fifth more rows per second, and may). Transactions
that write begin with `BEGIN IMMEDIATE`: one that begins by reading fails at its first write where it should wait.

MySQL and MariaDB: READ COMMITTED, as in PostgreSQL, because with their default two writers lock gaps between rows against each
other; UTC and strict mode, also where the server's are others; one collation for all texts (`times.py`).
"""

from __future__ import annotations

import json
import socket
import sqlite3
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import (
    ARRAY,
    URL,
    Column,
    ColumnElement,
    Connection,
    Engine,
    Text,
    any_,
    bindparam,
    create_engine,
    event,
    func,
    select,
)

from forums.records.stored import Stored
from workers.consumers.mysql_dialect import (
    CONNECT_ARGS,
    DRIVER,
    collation,
    has_other_driver,
    is_mysql,
    most_bytes,
    sent_bytes,
    why_too_large,
)


def among(column: Column[str], dialect: str, name: str = "among") -> ColumnElement[bool]:
    """Return the condition that `column` is among the values of the parameter `name`, built by `listed`."""
    if dialect == "postgresql":
        return column == any_(bindparam(name, type_=ARRAY(Text)))
    if dialect == "mysql":  # the driver writes values into the statement: their number is not limited
        return column.in_(bindparam(name, expanding=True))
    return column.in_(select(func.json_each(bindparam(name, type_=Text)).table_valued("value").c.value))


def listed(values: Collection[str], dialect: str) -> Any:
    """Return the value of the parameter of `among`."""
    return list(values) if dialect in ("postgresql", "mysql") else json.dumps(list(values), ensure_ascii=False)


def too_large(connection: Connection, items: Sequence[Stored]) -> dict[int, str]:
    """Return the reasons of items that are too large to send, by index; empty for databases without a limit."""
    if (most := most_bytes(connection)) is None:
        return {}
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


def other_mysql_driver(url: URL) -> bool:
    """Return True if the URL names a MySQL driver other than the supported one."""
    return is_mysql(url) and has_other_driver(url)


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
