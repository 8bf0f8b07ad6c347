"""SQL written by a user: one SELECT or VALUES, without effects on the database or its server; the time limit of statements
for a waiting client, such as a page; and the opening of a database that only is read, which creates none.

A read-only transaction is not enough: it runs `COPY … TO PROGRAM` and `SELECT … INTO OUTFILE`. So PostgreSQL gets the statement
behind `DECLARE … CURSOR FOR`, whose grammar allows nothing else, from a user without rights on the server; SQLite opens the file
for reading and authorizes each action; MySQL and MariaDB have neither, so some keywords are refused.
"""

from __future__ import annotations

import re
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from itertools import islice
from threading import Timer
from typing import Any

from sqlalchemy import Connection, Engine, event
from sqlalchemy.exc import DBAPIError

from forums.storage.database import Database
from forums.storage.engine import build, leave_unread, reading_only, sqlite_file
from forums.storage.errors import StorageError
from redis_components.errors import ConfigError, TrawlError

_LOOK_S = 0.1


class TakesTooLong(TrawlError):
    """The database was interrupted; the message has the reason."""


@contextmanager
def limited(engine: Engine, seconds: float, gone: threading.Event | None = None) -> Iterator[None]:
    """Interrupt statements of the engine within the block after `seconds`, or once `gone` is set. Raises TakesTooLong then."""
    held: set[Any] = set()
    lock, ended, why = threading.Lock(), threading.Event(), list[str]()
    deadline = time.monotonic() + seconds

    def hold(driver: Any, *_: Any) -> None:
        with lock:
            held.add(driver)

    def release(driver: Any, *_: Any) -> None:
        with lock:  # only drivers of this block are cancelled
            held.discard(driver)

    def watch() -> None:
        while not ended.wait(_LOOK_S):
            if (is_gone := gone is not None and gone.is_set()) or time.monotonic() > deadline:
                why[:] = ["its client is gone" if is_gone else f"it took the database more than {seconds:g} s"]
                with lock, suppress(Exception):  # repeated: a cancel between two statements has no effect
                    for driver in held:
                        _cancel(engine, driver)

    event.listen(engine, "checkout", hold)
    event.listen(engine, "checkin", release)
    watcher = threading.Thread(target=watch, name="statement-limit", daemon=True)
    watcher.start()
    try:
        yield
    except StorageError:
        if not why:
            raise
        raise TakesTooLong(why[0]) from None
    finally:
        ended.set()
        watcher.join()
        event.remove(engine, "checkout", hold)
        event.remove(engine, "checkin", release)


def _cancel(engine: Engine, driver: Any) -> None:
    if engine.dialect.name == "sqlite":
        driver.interrupt()
    elif engine.dialect.name == "postgresql":
        driver.cancel()
    else:  # by another connection, not one of the pool's
        with driver.__class__(**engine.dialect.create_connect_args(engine.url)[1]) as other, other.cursor() as cursor:
            cursor.execute(f"KILL QUERY {driver.thread_id():d}")


Rows = tuple[list[str], Iterator[tuple[Any, ...]]]

_LEADING = re.compile(r"(?:\s+|--[^\n]*(?:\n|$)|/\*(?!!).*?\*/|\()*+(SELECT|VALUES|WITH)\b", re.IGNORECASE | re.DOTALL)
_LINE_COMMENT = re.compile(r"(?:--\s|#)[^\n]*")
_COMMENT = re.compile(rf"/\*.*?(?:(\*/)|\Z)|({_LINE_COMMENT.pattern})", re.DOTALL)
_MYSQL_REFUSED = re.compile(
    r"\b(OUTFILE|DUMPFILE|LOAD_FILE|FOR\s+(UPDATE|SHARE)|IN\s+SHARE\s+MODE|NEXTVAL|SETVAL)\b|/\*M?!", re.IGNORECASE
)
_ROWS_AT_ONCE = 1000
_SQLITE_READS = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
_SQLITE_VALUE = 64 << 20  # bytes of one value: bounds the memory of an expression
_SQLITE_STEPS = 10_000  # SQLite's virtual machine instructions between two checks of the time
_POSTGRES_POWERS = """
SELECT CASE WHEN rolsuper THEN 'is a superuser' ELSE 'has the role ' || (
  SELECT min(r.rolname) FROM pg_roles r WHERE pg_has_role(session_user, r.oid, 'MEMBER')
  AND r.rolname IN ('pg_execute_server_program', 'pg_write_server_files', 'pg_signal_backend', 'pg_checkpoint')) END
FROM pg_roles WHERE rolname = session_user"""
_ONE_SELECT = "write one SELECT or VALUES, tables and columns are in docs/reference/database.md"


@contextmanager
def read_sql(database: Database, statement: str, *, limit: int, seconds: float) -> Iterator[Rows]:
    """Yield the column names and at most `limit` rows of one statement that reads, as the server sends them.

    Raises ConfigError for a statement that does more, is wrong, or takes longer than `seconds`, also while rows are taken.
    """
    if not _LEADING.match(statement):
        raise ConfigError(f"the statement does not begin with SELECT, VALUES or WITH: {_ONE_SELECT}")
    engine = build(reading_only(database.engine.url))  # for this statement alone: its session's settings and locks end with it
    try:
        with (
            database.translated(),
            engine.connect() as connection,
            _refusals(connection, statement, seconds),
            _OPENED[connection.dialect.name](connection, statement, seconds) as cursor,
        ):
            if cursor.description is None:
                raise ConfigError(f"the statement returns no rows: {_ONE_SELECT}")
            yield [column[0] for column in cursor.description], islice(_timely(cursor, seconds), limit)
    finally:
        engine.dispose()


def _timely(cursor: Any, seconds: float) -> Iterator[tuple[Any, ...]]:
    deadline = time.monotonic() + seconds
    for row in cursor:
        if time.monotonic() > deadline:
            raise too_long(seconds)
        yield tuple(row)


def too_long(seconds: float) -> ConfigError:
    """Return the error for a statement that is not ended in time."""
    return ConfigError(f"the statement takes longer than {seconds:g} s: let it read less, or give it more by --seconds")


@contextmanager
def _refusals(connection: Connection, statement: str, seconds: float) -> Iterator[None]:
    """Raise ConfigError for statements that the database refuses; errors of a lost connection stay the driver's."""
    driver: Any = connection.connection.dbapi_connection
    started = time.monotonic()
    try:
        yield
    except connection.dialect.loaded_dbapi.Error as error:
        if time.monotonic() - started >= seconds:
            raise too_long(seconds) from error
        if connection.dialect.is_disconnect(error, driver, None):
            raise DBAPIError(statement, None, error) from error
        reason = " ".join(str(error.args[-1] if error.args else error).split()).rstrip(".")
        raise ConfigError(f"the database refused: {reason}; {_ONE_SELECT}") from error


@contextmanager
def _postgresql(connection: Connection, statement: str, seconds: float) -> Iterator[Any]:
    connection.exec_driver_sql("SET TRANSACTION READ ONLY")
    if power := connection.exec_driver_sql(_POSTGRES_POWERS).scalar():
        raise ConfigError(
            f"user {connection.engine.url.username} of PostgreSQL {power}: trawl sql needs one that can only read, in"
            " TRAWL_READING_URL (docs/reference/database.md#reading-by-sql has the statements that make it)"
        )
    driver: Any = connection.connection.dbapi_connection
    timer = Timer(seconds, driver.cancel)  # not statement_timeout, which a SELECT can set
    timer.start()
    try:
        with driver.cursor("trawl_sql") as cursor:  # DECLARE, by the protocol that takes one statement
            cursor.itersize = _ROWS_AT_ONCE
            yield cursor.execute(statement)
    finally:
        timer.cancel()


@contextmanager
def _sqlite(connection: Connection, statement: str, seconds: float) -> Iterator[Any]:
    connection.exec_driver_sql("PRAGMA query_only = ON")
    driver: Any = connection.connection.dbapi_connection
    deadline = time.monotonic() + seconds
    driver.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _SQLITE_VALUE)
    driver.set_progress_handler(lambda: time.monotonic() > deadline, _SQLITE_STEPS)
    driver.set_authorizer(_allowed_in_sqlite)
    try:
        with closing(driver.cursor()) as cursor:
            yield cursor.execute(statement)
    finally:
        driver.set_authorizer(None)
        driver.set_progress_handler(None, 0)


def _allowed_in_sqlite(action: int, _first: str | None, second: str | None, *_: str | None) -> int:
    loads = action == sqlite3.SQLITE_FUNCTION and (second or "").lower() in ("load_extension", "fts3_tokenizer")
    return sqlite3.SQLITE_OK if action in _SQLITE_READS and not loads else sqlite3.SQLITE_DENY


def _without_comments(statement: str) -> str:
    """Return a statement with a space for each comment. What is not closed is none: it may stand in a text."""
    return _COMMENT.sub(lambda found: " " if found[1] or found[2] else _LINE_COMMENT.sub(" ", found[0]), statement)


@contextmanager
def _mysql(connection: Connection, statement: str, seconds: float) -> Iterator[Any]:
    """Open a read-only transaction; it would still let an administrator write a file and a reader lock rows, so these are
    refused.
    """
    from pymysql.cursors import SSCursor

    # With comments and without: a comment may part two words, and what looks like one may stand in a text.
    if found := _MYSQL_REFUSED.search(statement) or _MYSQL_REFUSED.search(_without_comments(statement)):
        raise ConfigError(f"the statement does more than read ({found.group()}): {_ONE_SELECT}")
    bound = f"max_statement_time = {seconds}" if getattr(connection.dialect, "is_mariadb", False) else ""
    connection.exec_driver_sql(f"SET SESSION {bound or f'max_execution_time = {seconds * 1000:.0f}'}")
    connection.exec_driver_sql("SET SESSION TRANSACTION READ ONLY")
    connection.exec_driver_sql("START TRANSACTION READ ONLY")
    driver: Any = connection.connection.dbapi_connection
    cursor = driver.cursor(SSCursor)
    try:
        cursor.execute(statement)  # one statement: this driver sends no others
        yield cursor
    finally:
        leave_unread(connection, cursor)


_OPENED: dict[str, Callable[[Connection, str, float], Any]] = {"postgresql": _postgresql, "sqlite": _sqlite, "mysql": _mysql}


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
