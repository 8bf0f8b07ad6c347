"""The database of crawled posts, comments and scan reports.

    with Database.from_url("sqlite:///data/trawl.sqlite") as database:
        refused = database.write([post, comment])

Open it in the process that uses it, not before a fork.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self

from sqlalchemy import URL, Connection, Engine, Row, Select, make_url
from sqlalchemy.exc import SQLAlchemyError

from forums.environment import Storage
from forums.records.stored import Item
from redis_components.embedded import data_dir
from redis_components.embedded.files import private_file, private_folder
from redis_components.errors import ConfigError
from redis_components.server.variables import variable
from workers.consumers.mysql_dialect import DRIVER, MYSQL, has_other_driver

from .engine import (
    EXAMPLES,
    KINDS,
    WRITING,
    StorageError,
    build,
    file_identity,
    in_memory,
    leave_unread,
    masked,
    sqlite_file,
    storage_error,
    unfit,
)
from .schema.version import prepare, stored_identity, stored_version
from .write.thread_checks import Rechecks, RechecksOf
from .write.upsert import Refused, Written, store, store_site_files

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

    def describe_sites(self, described: Mapping[str, tuple[str | None, str]]) -> None:
        """Store profile and address of each site, by its name."""
        with self.writing() as connection:
            store_site_files(connection, described, datetime.now(UTC))

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
