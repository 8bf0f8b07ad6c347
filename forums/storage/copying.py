"""Backup of the whole database into one file while it is written, and restore.

SQLite: its backup API, which copies one state; a restore replaces all tables in one transaction under open connections.
PostgreSQL: `pg_dump` and `pg_restore`, for Trawl's tables only; a restore is one transaction.
MySQL and MariaDB: `mysqldump` and `mysql`, for Trawl's tables only. A restore replaces table by table: one that was cut off is
repeated.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import BinaryIO

from sqlalchemy import URL, func, inspect, select

from redis_components.embedded.files import private_file, private_folder

from .database import MIGRATIONS_TABLE, Database
from .engine import LOCK_WAIT_S, sqlite_file
from .errors import StorageError, masked, storage_error
from .schema.search_index import ROWS
from .schema.tables import metadata, posts

SQLITE, POSTGRESQL, MYSQL = "database.sqlite", "database.pg", "database.sql"
"""File names of the copies; they name the format."""
_NAMES = {"sqlite": SQLITE, "postgresql": POSTGRESQL, "mysql": MYSQL}
_KINDS = {
    SQLITE: "SQLite",
    POSTGRESQL: "PostgreSQL",
    MYSQL: "MySQL or MariaDB",
    "database.mysql": "MySQL or MariaDB in the form of an older Trawl",
}
_DUMP_PROGRAMS, _LOAD_PROGRAMS = ("mariadb-dump", "mysqldump"), ("mariadb", "mysql")
_DUMP_ENDS = b"-- Dump completed"


def copy_name(database: Database) -> str:
    """Return the file name of a copy of this database."""
    return _NAMES[database.engine.dialect.name]


def copy_to(database: Database, target: Path) -> bool:
    """Copy the database into a new file; return False if there is no database yet. Raises StorageError."""
    url = database.engine.url
    private_file(target)
    if database.engine.dialect.name == "mysql":
        dump = ("--single-transaction", "--no-tablespaces", f"--result-file={target}", str(url.database))
        _run_mysql(url, _DUMP_PROGRAMS, *dump, *_tables(database))
        return True
    if database.engine.dialect.name != "sqlite":
        tables = [f"--table={name}" for name in _tables(database)]
        _run(url, "pg_dump", "--format=custom", "--no-owner", *tables, f"--file={target}")
        return True
    file = _file_of(url)
    if not file.exists():
        return False
    with (
        _translated(url),
        closing(sqlite3.connect(file, timeout=LOCK_WAIT_S)) as source,
        closing(sqlite3.connect(target)) as copy,
    ):
        source.backup(copy, pages=-1)  # one step: one state; in WAL mode the writer goes on
        copy.execute("PRAGMA journal_mode = DELETE")
    return True


def check(copy: Path, name: str, database: Database) -> None:
    """Raise StorageError if `copy_from` cannot read the copy."""
    url = database.engine.url
    if name != copy_name(database):
        kind = _KINDS.get(name, "another kind")
        raise StorageError(f"the backup has a database of {kind}, TRAWL_DATABASE_URL names {masked(url)}: name one of its kind")
    if name == MYSQL:
        with copy.open("rb") as file:
            file.seek(max(0, copy.stat().st_size - 1000))
            if _DUMP_ENDS not in file.read():
                raise StorageError("the database in the backup is damaged: its end is missing")
        return
    if name == POSTGRESQL:
        _run(url, "pg_restore", "--list", str(copy), connected=False)
        return
    try:
        with closing(sqlite3.connect(f"file:{copy}?mode=ro", uri=True)) as found:
            result = found.execute("PRAGMA quick_check(1)").fetchone()[0]
    except sqlite3.Error as error:
        result = str(error)
    if result != "ok":
        raise StorageError(f"the database in the backup is damaged: {result}")


def copy_from(database: Database, copy: Path) -> None:
    """Replace everything in the database by the copy, all or nothing, but for MySQL and MariaDB. Raises StorageError."""
    url = database.engine.url
    if database.engine.dialect.name == "mysql":
        with copy.open("rb") as dump:
            _run_mysql(url, _LOAD_PROGRAMS, str(url.database), given=dump)
        return
    if database.engine.dialect.name != "sqlite":
        _run(url, "pg_restore", "--clean", "--if-exists", "--no-owner", "--single-transaction", str(copy))
        return
    file = _file_of(url)
    private_folder(file.parent)
    private_file(file)
    with (
        _translated(url),
        closing(sqlite3.connect(copy)) as source,
        closing(sqlite3.connect(file, timeout=LOCK_WAIT_S)) as target,
    ):
        source.backup(target, pages=-1)


def has_posts(database: Database) -> bool:
    """Return True if the database holds a post. Raises StorageError."""
    file = sqlite_file(database.engine.url)
    if file and not file.exists():
        return False
    with database.reading() as connection:
        return inspect(connection).has_table(posts.name) and bool(connection.scalar(select(func.count()).select_from(posts)))


def _file_of(url: URL) -> Path:
    if file := sqlite_file(url):
        return file
    raise StorageError(f"database {masked(url)} is not a file: it cannot be backed up")


@contextmanager
def _translated(url: URL) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise storage_error(url, error) from error


def _tables(database: Database) -> list[str]:
    """Return the names of Trawl's tables that are there."""
    with database.reading() as connection:
        there = set(inspect(connection).get_table_names())
    return sorted(there & (set(metadata.tables) | {MIGRATIONS_TABLE, ROWS}))


def _run(url: URL, program: str, *arguments: str, connected: bool = True) -> None:
    """Run a program of PostgreSQL."""
    secret = url.password or url.query.get("password")
    plain = url.set(drivername="postgresql", password=None).difference_update_query(("password", "sslpassword"))
    where = ["--dbname", plain.render_as_string(hide_password=False)] if connected else []
    _run_client(url, (program,), [*where, *arguments], {"PGPASSWORD": str(secret)} if secret else {})


def _run_mysql(url: URL, programs: Sequence[str], *arguments: str, given: BinaryIO | None = None) -> None:
    """Run a program of MySQL or MariaDB, the first of these that is installed."""
    socket, authority = url.query.get("unix_socket"), url.query.get("ssl_ca")
    where = [f"--socket={socket}"] if socket else ["--protocol=TCP", f"--host={url.host or 'localhost'}"]
    where += [f"--port={url.port}"] if url.port else []
    where += [f"--user={url.username}"] if url.username else []
    where += [f"--ssl-ca={authority}"] if authority else []
    secret = {"MYSQL_PWD": str(url.password)} if url.password else {}
    _run_client(url, programs, [*where, "--default-character-set=utf8mb4", *arguments], secret, given)


def _run_client(
    url: URL, programs: Sequence[str], arguments: Sequence[str], secret: Mapping[str, str], given: BinaryIO | None = None
) -> None:
    """Run a client of the server. The password is passed in its environment, which other users cannot read."""
    found = next(filter(None, map(shutil.which, programs)), None)
    if found is None:
        missing = f"{' or '.join(programs)} is not on PATH"
        raise StorageError(f"{missing}: install the database's client programs, of the server's version or newer")
    done = subprocess.run(
        [found, *arguments], env=os.environ | secret, stdin=given or subprocess.DEVNULL, capture_output=True, check=False
    )
    if done.returncode:
        detail = " ".join(done.stderr.decode("utf-8", "replace").split())[:500]
        raise StorageError(f"database {masked(url)}: {programs[-1]} failed: {detail}")
