"""Creating the tables once, and refusing those of another version.

The row in `trawl_schema` is what migrations will start from: a database without Alembic's own table and with version 1 is stamped
with the first revision.
"""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy import Connection, Engine, inspect, select, text

from .engine import WRITING
from .errors import StorageError, masked
from .tables import DATA, crawler_runs, metadata, trawl_schema

VERSION = 1
_ADVISORY_LOCK = 0x7472_6177_6C  # "trawl": one process at a time creates tables in a PostgreSQL database


def prepare(engine: Engine) -> None:
    """Create the tables where there are none. Raises StorageError when they are of another version or of another program.

    A database that is ready is only read, so that an export works with read-only rights. Two processes may do this at once.
    """
    with engine.connect() as connection:
        version = stored_version(connection)
    if version is None:
        with engine.connect().execution_options(**WRITING) as connection, connection.begin():
            version = _create(connection)
    if problem := mismatch(version):
        raise StorageError(f"database {masked(engine.url)}: {problem}")


def complete(engine: Engine) -> None:
    """Add the table of crawler runs to a database that was made before there was one. Older versions do not mind it."""
    with engine.connect() as connection:
        if has_runs(connection):
            return
    with engine.connect().execution_options(**WRITING) as connection, connection.begin():
        _lock(connection)
        crawler_runs.create(connection, checkfirst=True)


def has_runs(connection: Connection) -> bool:
    """Whether there is a table of crawler runs."""
    return inspect(connection).has_table(crawler_runs.name)


def stored_version(connection: Connection) -> int | None:
    """Version of the tables in the database, None when it has none yet."""
    if not inspect(connection).has_table(trawl_schema.name):
        return None
    return connection.execute(select(trawl_schema.c.version)).scalar()


def mismatch(version: int) -> str | None:
    """What to tell the operator about tables of this version; None when they are ours."""
    if version > VERSION:
        return f"its tables have version {version}, this Trawl knows {VERSION}; upgrade Trawl here, or name another database"
    if version < VERSION:
        return (
            f"its tables have version {version}, this Trawl needs {VERSION}; name another database, or use the Trawl that made it"
        )
    return None


def _create(connection: Connection) -> int:
    _lock(connection)
    version = stored_version(connection)  # again: another process may have been here first
    if version is not None:
        return version
    foreign = sorted(set(inspect(connection).get_table_names()) & set(DATA))
    if foreign:
        raise StorageError(
            f"database {masked(connection.engine.url)}: its table {foreign[0]} was not made by Trawl; name another database"
        )
    metadata.create_all(connection, checkfirst=False)
    connection.execute(trawl_schema.insert().values(id=1, version=VERSION, created_at=datetime.now(UTC)))
    return VERSION


def _lock(connection: Connection) -> None:
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _ADVISORY_LOCK})
