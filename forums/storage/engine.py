"""SQLAlchemy engines, one function per kind of database, and the look-up of many ids in one query. Nothing here connects.

SQLite: WAL, so that readers and the writer do not wait for each other. `synchronous=FULL`: rows leave Redis once they are
committed, so a power cut must not take a commit back (NORMAL stores about a fifth more rows per second, and may). Transactions
that write begin with `BEGIN IMMEDIATE`: one that begins by reading fails at its first write where it should wait.

MySQL and MariaDB: READ COMMITTED, as in PostgreSQL, because with their default two writers lock gaps between rows against each
other; UTC and strict mode, also where the server's are others; one collation for all texts (`dialects.py`).

Errors are translated into one line with the database, the driver's message, and the fix. Two kinds are kept apart. A *row* that
the database refuses (a NUL byte in PostgreSQL, a CHECK constraint added by the operator) is set aside, and the other rows are
stored. A failed *database* (away, locked, full, read-only) stops the writer, and all items stay in the stream. Mistaking the
second for the first would discard good items, so unknown errors count as the second.
"""

from __future__ import annotations

import re
import socket
import sqlite3
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from sqlalchemy import (
    URL,
    Column,
    ColumnElement,
    Connection,
    Engine,
    Row,
    Select,
    and_,
    bindparam,
    create_engine,
    event,
)
from sqlalchemy.exc import NoSuchModuleError

from forums.records.stored import Item
from redis_components.errors import TrawlError
from workers.consumers.database_rows import cause_of, is_of_a_row
from workers.consumers.mysql_dialect import (
    CONNECT_ARGS,
    DRIVER,
    collation,
    error_code,
    most_bytes,
    sent_bytes,
    why_too_large,
)

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


_SECRET_OPTIONS = ("password", "sslpassword")
EXAMPLES = "sqlite:///data/trawl.sqlite, postgresql+psycopg://user:password@host/database or mysql+pymysql://… (also MariaDB)"

# Pattern in the driver's message -> fix for the operator. The first match is taken.
_FIXES = (
    (r"No module named 'psycopg", "install the driver: pip install 'trawl-fleet[postgres]'"),
    (r"No module named 'pymysql", "install the driver: pip install 'trawl-fleet[mysql]'"),
    (r"No module named|Can't load plugin", f"use {EXAMPLES}"),
    (r"Access denied for user .{0,200} to database|command denied to user",
     "grant this user the rights to create and write the tables"),
    (r"Access denied for user|password authentication|no password supplied|"
     r"role .{0,200} does not exist|Ident authentication|Peer authentication",
     "check user and password in TRAWL_DATABASE_URL"),
    (r"Unknown database", "create it first (CREATE DATABASE), or correct its name in TRAWL_DATABASE_URL"),
    (r"Too many connections", "raise the server's max_connections, or end other programs that use it"),
    (r"Deadlock found|Record has changed since last read", "it is tried again"),
    (r"Lock wait timeout", "another program holds a lock: find it (SHOW FULL PROCESSLIST) and let it finish"),
    (r"max_allowed_packet", "raise the server's max_allowed_packet"),
    (r"BINLOG_FORMAT", "set the server's binlog_format to ROW or MIXED"),
    (r"database \S+ does not exist", "create it first (createdb), or correct its name in TRAWL_DATABASE_URL"),
    (r"connection (to server|failed|is bad|is lost|timeout)|closed the connection|terminating connection|host name|shutting down"
     r"|connect to MySQL|connection to MySQL|server has gone away|server is shut|Server shutdown|Connection was killed",
     "check that the server runs and that host and port in TRAWL_DATABASE_URL are right"),
    (r"permission denied for", "grant this user the rights to create and write the tables"),
    (r"[Dd]isk (is )?full|No space left|could not extend|The table .{0,200} is full", "make room on its disk"),
    (r"disk I/O error", "look at its disk (dmesg, df), and at limits on the size of files (ulimit -f)"),
    (r"--read-only|--super-read-only|READ ONLY", "name the server that takes writes in TRAWL_DATABASE_URL"),
    (r"readonly|read-only|Read-only", "make file and folder writable for this user, or name another place in TRAWL_DATABASE_URL"),
    (r"unable to open|Permission denied|Not a directory|File exists",
     "check that its folder can be made and written by this user, or name another place in TRAWL_DATABASE_URL"),
    (r"locked", "another process holds its write lock: find it (fuser FILE) and let it finish"),
    (r"not a database|malformed", "the file is not a sound SQLite database: move it away, or name another in TRAWL_DATABASE_URL"),
    (r"no such (table|column)|relation .{0,200} does not exist|column .{0,200} does not exist|"
     r"Table .{0,200} doesn't exist|Unknown column",
     "its tables are not those that Trawl made: name an empty database in TRAWL_DATABASE_URL"),
)  # fmt: skip


class StorageError(TrawlError):
    """The database cannot be opened, read or written; the message names it (its password masked) and how to mend it."""


def masked(url: URL | str) -> str:
    """Return the URL for people and logs, without its password."""
    if isinstance(url, str):  # could not be parsed: the text after the first colon may be a password
        return re.sub(r"(:/*).*", r"\1***", url, flags=re.DOTALL)
    secret = {name: "***" for name in _SECRET_OPTIONS if name in url.query}
    shown = url.update_query_dict(secret).render_as_string(hide_password=True)
    # A path is shown decoded: %E6%88%91 is unreadable, 我 is not.
    return unquote(shown) if url.get_backend_name() == "sqlite" else shown


def storage_error(url: URL | str, error: Exception) -> StorageError:
    """Return a StorageError with one line for `error`, a failure of the database."""
    detail = first_line(error)
    if isinstance(url, URL) and url.password:
        detail = detail.replace(str(url.password), "***")
    fix = next((fix for pattern, fix in _FIXES if re.search(pattern, detail)), "see the database's own log")
    return unfit(url, f"{detail}; {fix}")


def unfit(url: URL | str, what: str) -> StorageError:
    """Return the error for a database that cannot serve, without its password; `what` has the reason and the fix."""
    return StorageError(f"database {masked(url)}: {what}")


def too_old(url: URL, version: str) -> StorageError:
    """Return the error for a server of MySQL or MariaDB that is not supported any more."""
    return unfit(url, f"its server has version {version}; use MySQL 8.0.17, MariaDB 10.6, or a later one")


def first_line(error: Exception) -> str:
    """Return the driver's message in one line, without SQLAlchemy's statement and parameters."""
    if isinstance(error, NoSuchModuleError):
        return str(error).partition("\n")[0]
    cause = cause_of(error)
    if isinstance(cause, OSError) and cause.strerror:
        return f"{cause.strerror}: {cause.filename}"
    if code := error_code(cause):
        return f"{' '.join(str(cause.args[-1]).split())} ({code})"
    lines = str(cause).strip().splitlines() or [type(cause).__name__]
    return lines[0].strip()


def row_refusal(error: Exception) -> str | None:
    """Return the reason if the database refused a row, None if the database failed."""
    return f"the database refused it: {first_line(error)}" if is_of_a_row(error) else None
