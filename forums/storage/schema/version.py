"""Creation and upgrade of the tables; newer tables are refused.

A database gets what it lacks of `tables.py` and `search_index.py`, whether it is new or has the tables of an older version; its
version is noted in `trawl_migrations`. The table `trawl_schema` has the oldest version whose Trawl may write here: every Trawl
reads it there, and refuses a number above its own. An upgrade that only adds leaves it as it is, so nodes of the version before
go on while newer ones run, and come back after them; what those nodes leave out is made up for by `write/derived.py`.

MySQL and MariaDB commit each statement that changes tables. An upgrade that dies half-way is run again, and what is there is
kept. SQLite and PostgreSQL roll all of it back.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from hashlib import sha256
from itertools import chain

from sqlalchemy import Column, Connection, Engine, MetaData, String, Table, delete, func, insert, inspect, select, text
from sqlalchemy.dialects.mysql.base import MySQLDialect

from forums.storage.engine import WRITING, StorageError, masked, too_old
from forums.storage.write import derived

from . import search_index
from .tables import metadata, trawl_schema

logger = logging.getLogger(__name__)

VERSION = 7
WRITABLE_SINCE = 4  # versions 5 to 7 only add tables, indexes, and in MySQL columns that compute themselves
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
    if version is None or (version < VERSION and upgrade):
        with _changing(engine) as connection:
            version = _upgrade(connection)
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
    derived.fill(connection)
    connection.execute(delete(_migrations))
    connection.execute(insert(_migrations).values(version_num=f"{VERSION:04}"))
    if version is None:  # the version comes last: MySQL commits what is before it
        first = {"id": 1, "version": WRITABLE_SINCE, "created_at": datetime.now(UTC), "identity": uuid.uuid4().hex}
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
            raise too_old(connection.engine.url, ".".join(map(str, found)))


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
