"""The database of crawled posts, comments and scan reports.

    with Database.from_url("sqlite:///data/trawl.sqlite") as database:
        refused = database.write([post, comment])

Open it in the process that uses it, not before a fork.

A database gets what it lacks of `tables.py` and `search_index.py`, whether it is new or has the tables of an older version; its
version is noted in `trawl_migrations`. The table `trawl_schema` has the oldest version whose Trawl may write here: every Trawl
reads it there, and refuses a number above its own. An upgrade, which only adds, leaves it as it is, so nodes of the version
before go on while newer ones run, and come back after them; what those nodes leave out is made up for by `write/upsert.py`, and
the tables and columns that they alone have stay.

MySQL and MariaDB commit each statement that changes tables. An upgrade that dies half-way is run again, and what is there is
kept. SQLite and PostgreSQL roll all of it back.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from hashlib import sha256
from itertools import chain, islice
from types import TracebackType
from typing import Any, Self

import redis
from sqlalchemy import (
    URL,
    Column,
    Connection,
    Engine,
    MetaData,
    Row,
    Select,
    String,
    Table,
    delete,
    func,
    insert,
    inspect,
    make_url,
    or_,
    select,
    text,
)
from sqlalchemy.dialects.mysql.base import MySQLDialect
from sqlalchemy.exc import SQLAlchemyError

from fleet_operations.consumers.mysql_dialect import DRIVER, MYSQL, has_other_driver
from forums import FORUM_DETAIL
from forums.environment import Storage
from forums.freshness import Rechecks, RechecksOf
from forums.records.stored import Check, Item
from forums.state.database_state import CHUNK, ThreadRecord, most_records, put_back
from redis_components.embedded import data_dir
from redis_components.embedded.files import private_file, private_folder
from redis_components.errors import ConfigError
from redis_components.keys import keys_in
from redis_components.server.variables import variable

from .engine import KINDS, WRITING, build, file_identity, in_memory, leave_unread, sqlite_file
from .errors import EXAMPLES, StorageError, masked, storage_error, unfit
from .schema import search_index
from .schema.tables import checks, metadata, trawl_schema
from .write.changes import Refused, Written
from .write.upsert import catch_up, fill, is_indexed, store

_ROWS_AT_ONCE = 1000
_FIRST_WITH_IDENTITY = 3  # version of the tables


def default_url() -> str:
    """Return TRAWL_DATABASE_URL, else the file `trawl.sqlite` in the project's data directory."""
    if given := Storage.read().database_url:
        return given.get_secret_value()
    return URL.create("sqlite", database=str(data_dir() / "trawl.sqlite")).render_as_string(hide_password=False)


def check_url() -> None:
    """Raise ConfigError if TRAWL_DATABASE_URL can never work: not a URL, an unsupported database, a missing driver, or a database
    in memory, which processes cannot share.
    """
    if variable("TRAWL_DATABASE_URL"):
        try:
            database = Database.from_url()
            database.close()
            if in_memory(database.engine.url):
                lost = "it is in memory, and all rows would be lost with the process that stored them; name a file"
                raise unfit(database.engine.url, f"{lost}: use {EXAMPLES}")
        except StorageError as error:
            raise ConfigError(f"TRAWL_DATABASE_URL: {error}") from error


def thread_record(check: Check | Row[*tuple[Any, ...]]) -> ThreadRecord:
    """Return the record of a thread by its newest check, or by the row of that in `checks`."""
    started_s = int(check.started_at.timestamp())
    return ThreadRecord(
        token=check.token or "",
        comments=check.comments if check.total is None else check.total,
        last_page=0 if check.gone else max(1, check.last_page),
        last_comment=check.last_comment_id,
        cursor=check.cursor,
        hour=started_s // 3600,
        listed=check.listed,
        short=check.short,
        told_at=started_s if check.token is None else None,
    )


NEWEST_READINGS = select(checks).where(or_(checks.c.reason.is_(None), checks.c.gone)).order_by(checks.c.finished_at.desc())
"""Those of threads that were read as a whole, or are gone."""


class Database:
    """SQLite, PostgreSQL, MySQL or MariaDB with Trawl's tables. Every failure is a StorageError, one line for the operator."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.rechecks: RechecksOf = lambda site: Rechecks()
        self.removed: Callable[[], Collection[str]] = frozenset
        """Returns the removed sites, whose items are dropped."""
        self._file: tuple[int, int] | None = None

    @classmethod
    def from_url(cls, url: str | None = None) -> Self:
        """Return the database at a SQLAlchemy URL (None: `default_url()`), without connecting.

        Raises StorageError for text that is not a URL, another kind of database, or a driver that is not installed.
        """
        text = url or default_url()
        try:
            parsed = make_url(text)
        except (SQLAlchemyError, ValueError) as error:  # ValueError: a port that is not a number
            raise unfit(text, f"this is not a database URL; use {EXAMPLES}") from error
        if parsed.get_backend_name() in MYSQL and has_other_driver(parsed):
            fix = f"write {parsed.set(drivername=DRIVER).render_as_string(hide_password=True)}"
            raise unfit(parsed, f"of MySQL and MariaDB Trawl uses the driver pymysql: {fix}")
        try:
            if parsed.get_backend_name() not in KINDS or parsed.get_dialect().is_async:
                raise unfit(parsed, f"Trawl knows no database {parsed.drivername!r}; use {EXAMPLES}")
            return cls(build(parsed))
        except (SQLAlchemyError, ImportError) as error:
            raise storage_error(parsed, error) from error

    @property
    def name(self) -> str:
        """The URL with its password masked, for messages."""
        return masked(self.engine.url)

    def open(self, *, upgrade: bool = True) -> Self:
        """Connect, create folder, file and tables if they are missing, and upgrade older tables (without `upgrade`: refuse them).

        Safe to call again.
        """
        try:
            with self.translated():
                if path := sqlite_file(self.engine.url):
                    private_folder(path.parent)
                    with suppress(OSError):  # the driver's error names the cause
                        private_file(path)  # its log and index get the same permissions
                prepare(self.engine, upgrade=upgrade)
                self._file = file_identity(self.engine.url)
        except BaseException:
            self.close()  # the pool may hold a connection, and the caller does not close a database that failed to open
            raise
        return self

    def version(self) -> int | None:
        """Return the version of the tables, None if there are none yet. The database need not be open. Raises StorageError."""
        with self.reading() as connection:
            return stored_version(connection)

    def identity(self) -> str | None:
        """Return the database's random id, which differs in a replaced or recreated database. Raises StorageError."""
        with self.reading() as connection:
            return stored_identity(connection)

    def found_identity(self) -> str | None:
        """Return the identity of the tables that are there, None where there are none; makes no file. Raises StorageError."""
        file = sqlite_file(self.engine.url)
        if file is not None and not file.exists():
            return None
        return self.identity() if (self.version() or 0) >= _FIRST_WITH_IDENTITY else None

    def close(self) -> None:
        self.engine.dispose()

    def write(self, items: Sequence[Item], written: Written | None = None) -> list[Refused]:
        """Upsert `items` in one transaction and commit it; return the items that the database refused, with the reasons.
        New rows and changes are added to `written`.

        After a StorageError nothing of the batch is stored, or (a connection lost during the commit) all of it: write it again.
        The same holds if an SQLite file was removed or replaced while it was open: close this database and open it again.
        """
        with self.writing() as connection:
            refused = store(connection, items, self.rechecks, written or Written(), self.removed)
        if file_identity(self.engine.url) != self._file:  # SQLite continued in an unlinked file
            fix = "put it back; or run `trawl db move`, and `trawl forums forget --all`, else what it held is not read again"
            raise unfit(self.engine.url, f"its file was removed or replaced while it was open: {fix}")
        return refused

    def recall(self, client: redis.Redis) -> None:
        """Put back the records of the newest readings into a Redis that knows no database. Call it before a claim.

        Records written since stay. Safe to run concurrently. Raises StorageError and `redis.RedisError`.
        """
        if self.found_identity() is None:
            return
        keys, count = keys_in(client, FORUM_DETAIL), 0
        stored = self.stream(NEWEST_READINGS.limit(most_records()))
        while rows := list(islice(stored, CHUNK)):
            put_back(client, keys, {f"{row.site}/{row.post_id}": thread_record(row) for row in rows})
            count += len(rows)
        if count:
            logger.warning("Redis had forgotten the threads; put back from %s: %d", self.name, count)

    def stream(self, query: Select[*tuple[Any, ...]]) -> Generator[Row[*tuple[Any, ...]], None, None]:
        """Yield the rows of `query` from one snapshot, a thousand in memory at a time.

        A caller that may stop before the last row closes the generator (`contextlib.closing`), which returns the connection.
        """
        with (
            self.translated(),
            self.engine.connect().execution_options(yield_per=_ROWS_AT_ONCE) as connection,
            connection.execute(query) as rows,
        ):
            try:
                yield from rows
            except GeneratorExit:
                leave_unread(connection, rows.cursor)
                raise

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Raise errors of the database as StorageError."""
        try:
            yield
        except (SQLAlchemyError, OSError) as error:
            raise storage_error(self.engine.url, error) from error

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Open a connection. Raises StorageError."""
        with self.translated(), self.engine.connect() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Open a connection in a transaction, which is committed at the end. Raises StorageError."""
        with self.translated(), self.engine.connect().execution_options(**WRITING) as connection, connection.begin():
            yield connection

    def rows(self, query: Select[*tuple[Any, ...]]) -> Sequence[Row[*tuple[Any, ...]]]:
        """Return the rows of a query. Raises StorageError."""
        with self.reading() as connection:
            return connection.execute(query).all()

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


logger = logging.getLogger(__name__)

VERSION = 7
MIGRATIONS_TABLE = "trawl_migrations"  # in the form of Alembic, which made it once
_migrations = Table(MIGRATIONS_TABLE, MetaData(), Column("version_num", String(32), primary_key=True))
_FIRST = 4  # of commit 49295b45, with which upgrades begin
_NEW_TABLES = frozenset({"board_months", "run_members"})  # since _FIRST
_ADVISORY_LOCK = 0x7472_6177_6C  # "trawl": one process at a time makes or changes tables in a PostgreSQL database
_MYSQL_FIRST = (8, 0, 17), (10, 6)  # of MySQL, of MariaDB
_LOCK_WAIT_S = 30  # PostgreSQL: a running export delays a migration, and a waiting migration delays all other statements


def prepare(engine: Engine, *, upgrade: bool = True) -> None:
    """Bring the tables to this Trawl's version, from none or from an older one. Two processes may do this at once.

    A database of the right version is only read, so an export works with read-only rights. Without `upgrade` older tables are
    refused: a reader must not change tables that a running fleet of an older Trawl writes.
    Raises StorageError for newer tables, tables of another program, and older tables without `upgrade`.
    """
    with engine.connect() as connection:
        _check_server(connection)
        version = stored_version(connection)
        behind = version == VERSION and upgrade and not is_indexed(connection)
    if version is None or (version < VERSION and upgrade):
        with _changing(engine) as connection:
            version = _upgrade(connection)
    elif behind:
        with _changing(engine) as connection:
            catch_up(connection)
    if problem := mismatch(version):
        raise StorageError(f"database {masked(engine.url)}: {problem}")


def stored_version(connection: Connection) -> int | None:
    """Return the version of the tables, None if the database has none yet; VERSION for newer tables that this Trawl may write."""
    there = inspect(connection)
    if not there.has_table(trawl_schema.name):
        return None
    oldest = connection.execute(select(trawl_schema.c.version)).scalar()
    if oldest is None or oldest >= VERSION or not there.has_table(MIGRATIONS_TABLE):
        return oldest
    noted = connection.execute(select(_migrations.c.version_num)).scalar()
    return max(oldest, min(int(noted or 0), VERSION))


def stored_identity(connection: Connection) -> str | None:
    """Return the random id of this database."""
    return connection.execute(select(trawl_schema.c.identity)).scalar()


def mismatch(version: int) -> str | None:
    """Return the error for tables of this version; None if the version is right."""
    if version > VERSION:
        return f"its tables have version {version}, this Trawl knows {VERSION}; upgrade Trawl here, or name another database"
    if version < VERSION:
        return (
            f"its tables have version {version}, this Trawl reads {VERSION}; upgrade them by `trawl db upgrade`, or by a fleet of"
            " this Trawl (trawl up), which does so when it first stores items"
        )
    return None


def _upgrade(connection: Connection) -> int:
    """Make or upgrade the tables; return the version afterwards, which differs from VERSION only if it is newer."""
    version = stored_version(connection)  # again: another process may have been here first
    if version is not None and version >= VERSION:
        return version
    if version not in (None, _FIRST):
        raise StorageError(
            f"database {masked(connection.engine.url)}: tables of version {version} cannot be upgraded, only those of"
            f" {_FIRST}: export its rows with the Trawl that made it, and name another database"
        )
    _refuse_foreign(connection, set(metadata.tables) if version is None else _NEW_TABLES)
    texts = "" if version is None else "; the search gets an index, some minutes for a million rows"
    logger.info("database %s: tables are brought to version %d%s", masked(connection.engine.url), VERSION, texts)
    _migrations.create(connection, checkfirst=True)  # first: in MySQL it shows that the tables are Trawl's
    metadata.create_all(connection)
    for index in chain.from_iterable(table.indexes for table in metadata.sorted_tables):
        index.create(connection, checkfirst=True)  # in MySQL a Trawl may have died between a table and its index
    search_index.create(connection)
    search_index.create_indexes_of_times(connection)
    fill(connection)
    connection.execute(delete(_migrations))
    connection.execute(insert(_migrations).values(version_num=f"{VERSION:04}"))
    if version is None:  # the version comes last: MySQL commits what is before it
        first = {"id": 1, "version": VERSION, "created_at": datetime.now(UTC), "identity": uuid.uuid4().hex}
        connection.execute(insert(trawl_schema).values(first))
    return VERSION


def _refuse_foreign(connection: Connection, wanted: Collection[str]) -> None:
    """Raise StorageError if a table to be created exists already and is not Trawl's."""
    there = set(inspect(connection).get_table_names())
    if connection.dialect.name == "mysql" and MIGRATIONS_TABLE in there:
        return  # a Trawl died while it created them: existing tables are kept
    if foreign := sorted(there.intersection(wanted)):
        raise StorageError(
            f"database {masked(connection.engine.url)}: its table {foreign[0]} was not made by Trawl; name another database"
        )


def _check_server(connection: Connection) -> None:
    """Raise StorageError for an unsupported version of MySQL or MariaDB."""
    dialect = connection.dialect
    if isinstance(dialect, MySQLDialect):
        found = dialect.server_version_info or ()
        if found < _MYSQL_FIRST[dialect.is_mariadb]:
            needed = "use MySQL 8.0.17, MariaDB 10.6, or a later one"
            raise unfit(connection.engine.url, f"its server has version {'.'.join(map(str, found))}; {needed}")


@contextmanager
def _changing(engine: Engine) -> Iterator[Connection]:
    """Open a connection in a transaction, as the only process that creates or changes tables."""
    with engine.connect().execution_options(**WRITING) as connection:
        if connection.dialect.name == "mysql":  # a statement that changes tables ends each transaction, and its locks
            connection.detach()  # closed at the end, which releases the lock
            name = f"trawl.{sha256(str(engine.url.database).encode()).hexdigest()[:32]}"
            if not connection.execute(select(func.get_lock(name, _LOCK_WAIT_S))).scalar():
                raise StorageError(f"database {masked(engine.url)}: another process has been changing its tables for a while")
            connection.commit()
        with connection.begin():
            if connection.dialect.name == "postgresql":
                connection.execute(text(f"SET LOCAL lock_timeout = '{_LOCK_WAIT_S}s'"))
                connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _ADVISORY_LOCK})
            yield connection
