"""Backup of the whole database into one file while it is written, and restore.

SQLite: its backup API, which copies one state; a restore replaces all tables in one transaction under open connections.
PostgreSQL: `pg_dump` and `pg_restore`, for Trawl's tables only. MySQL and MariaDB: `copying_mysql.py`.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from sqlalchemy import URL, func, inspect, select

from redis_components.embedded.private_files import private_file, private_folder

from .copying_mysql import check_copy, read_copy, write_copy
from .database import Database
from .engine import LOCK_WAIT_S, sqlite_file
from .errors import StorageError, masked, storage_error
from .operator_states import operator_states
from .schema.tables import metadata, posts
from .schema.version import MIGRATIONS_TABLE

SQLITE, POSTGRESQL, MYSQL = "database.sqlite", "database.pg", "database.mysql"
"""File names of the copies; they name the format."""
_NAMES = {"sqlite": SQLITE, "postgresql": POSTGRESQL, "mysql": MYSQL}
_KINDS = {SQLITE: "SQLite", POSTGRESQL: "PostgreSQL", MYSQL: "MySQL or MariaDB"}


def copy_name(database: Database) -> str:
    """Return the file name of a copy of this database."""
    return _NAMES[database.engine.dialect.name]


def copy_to(database: Database, target: Path) -> bool:
    """Copy the database into a new file; return False if there is no database yet. Raises StorageError."""
    url = database.engine.url
    private_file(target)
    if database.engine.dialect.name == "mysql":
        write_copy(database, target, {*metadata.tables, MIGRATIONS_TABLE, operator_states.name})
        return True
    if database.engine.dialect.name != "sqlite":
        _run(url, "pg_dump", "--format=custom", "--no-owner", *_tables(database), f"--file={target}")
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
        check_copy(copy)
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
    """Replace everything in the database by the copy, all or nothing. Raises StorageError."""
    url = database.engine.url
    if database.engine.dialect.name == "mysql":
        read_copy(database, copy)
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
    with database.translated(), database.engine.connect() as connection:
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
    with database.translated(), database.engine.connect() as connection:
        there = set(inspect(connection).get_table_names())
    ours = sorted(there & (set(metadata.tables) | {"alembic_version", operator_states.name}))
    return [f"--table={name}" for name in ours]


def _run(url: URL, program: str, *arguments: str, connected: bool = True) -> None:
    """Run a program of PostgreSQL. The password is passed in its environment, which other users cannot read."""
    if not (found := shutil.which(program)):
        raise StorageError(f"{program} is not on PATH: install PostgreSQL's client programs, of the server's version or newer")
    secret = url.password or url.query.get("password")
    plain = url.set(drivername="postgresql", password=None).difference_update_query(("password", "sslpassword"))
    where = ["--dbname", plain.render_as_string(hide_password=False)] if connected else []
    environment = os.environ | ({"PGPASSWORD": str(secret)} if secret else {})
    done = subprocess.run([found, *where, *arguments], env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        detail = " ".join(done.stderr.split())[:500]
        raise StorageError(f"database {masked(url)}: {program} failed: {detail}")
