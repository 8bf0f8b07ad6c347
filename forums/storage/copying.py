"""Backup of the whole database into one file while it is written, and restore.

SQLite: its backup API, which copies one state; a restore replaces all tables in one transaction under open connections.
PostgreSQL: `pg_dump` and `pg_restore`, for Trawl's tables only.
MySQL and MariaDB: without programs of the server. The file has a line of JSON for each table (its name, its `CREATE TABLE`, its
columns), followed by a line for each of its rows, all of one moment; the last line has the number of rows. A restore fills new
tables, and one atomic `RENAME TABLE` swaps all of them with the existing tables.
"""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import subprocess
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager
from itertools import groupby, islice
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import URL, Connection, func, inspect, select, text

from redis_components.embedded.files import private_file, private_folder

from .database import Database
from .engine import LOCK_WAIT_S, WRITING, StorageError, masked, sqlite_file, storage_error
from .history import operator_states
from .schema.search_index import ROWS
from .schema.tables import metadata, posts
from .schema.version import MIGRATIONS_TABLE

_NEW, _OLD = "trawl_new_", "trawl_old_"
_ROWS_AT_ONCE = 1000
_OURS = re.compile(r"[a-z_]{1,40}")


class _TableLine(msgspec.Struct, kw_only=True):
    table: str
    create: str
    columns: list[str]


class _End(msgspec.Struct, kw_only=True):
    rows: int


def write_copy(database: Database, target: Path, names: Collection[str]) -> None:
    """Write the tables of `names` that exist. Raises StorageError."""
    encode, count = msgspec.json.encode, 0
    with (
        target.open("wb") as out,
        database.translated(),
        database.engine.connect().execution_options(yield_per=_ROWS_AT_ONCE, isolation_level="REPEATABLE READ") as connection,
    ):
        there = sorted(set(inspect(connection).get_table_names()) & set(names))
        connection.commit()
        connection.exec_driver_sql("START TRANSACTION WITH CONSISTENT SNAPSHOT")
        for name in there:
            create = connection.exec_driver_sql(f"SHOW CREATE TABLE `{name}`").one()[1]
            stored = [f"`{one['name']}`" for one in inspect(connection).get_columns(name) if "computed" not in one]
            rows = connection.exec_driver_sql(f"SELECT {', '.join(stored)} FROM `{name}`")  # noqa: S608 - names are ours
            out.write(encode(_TableLine(table=name, create=create, columns=list(rows.keys()))) + b"\n")
            for row in rows:
                out.write(encode(tuple(row)) + b"\n")
                count += 1
        out.write(encode(_End(rows=count)) + b"\n")


def check_copy(copy: Path) -> None:
    """Raise StorageError if a copy is incomplete or damaged."""
    for _ in _lines(copy):
        pass


def read_copy(database: Database, copy: Path) -> None:
    """Replace the existing tables by the tables of the copy. Raises StorageError."""
    with database.translated(), database.engine.connect().execution_options(**WRITING) as connection:
        there = set(inspect(connection).get_table_names())
        _drop(connection, [name for name in there if name.startswith((_NEW, _OLD))])  # of a process that died
        names: list[str] = []
        inserts: dict[str, str] = {}
        lines = _lines(copy)
        while rows := list(islice(lines, _ROWS_AT_ONCE)):
            for (head, is_head), batch in groupby(rows, lambda line: (line[0], line[1] is None)):
                table = head.table
                if is_head:
                    names.append(table)
                    create = head.create.replace(f"`{table}`", f"`{_NEW}{table}`", 1)
                    connection.exec_driver_sql(create, execution_options={"no_parameters": True})
                    columns, values = ", ".join(f"`{one}`" for one in head.columns), ", ".join(["%s"] * len(head.columns))
                    inserts[table] = f"INSERT INTO `{_NEW}{table}` ({columns}) VALUES ({values})"  # noqa: S608 - names are checked
                else:
                    connection.exec_driver_sql(inserts[table], [row for _, row in batch if row is not None])
            connection.commit()
        moves = [f"`{name}` TO `{_OLD}{name}`" for name in names if name in there]
        moves += [f"`{_NEW}{name}` TO `{name}`" for name in names]
        connection.execute(text("RENAME TABLE " + ", ".join(moves)))
        _drop(connection, [_OLD + name for name in names if name in there])


def _lines(copy: Path) -> Iterator[tuple[_TableLine, tuple[Any, ...] | None]]:
    """Yield each table's header line with None, and each row with the header of its table. Raises StorageError for an incomplete
    copy.
    """
    table: _TableLine | None = None
    count, end = 0, None
    decoder = msgspec.json.Decoder(list[Any] | dict[str, Any])
    try:
        with copy.open("rb") as file:
            for line in file:
                found = decoder.decode(line)
                if isinstance(found, list):
                    if table is None or len(found) != len(table.columns):
                        raise ValueError(f"row {count + 1} has no table, or other columns")
                    count += 1
                    yield table, tuple(found)
                elif "rows" in found:
                    end = msgspec.convert(found, _End).rows
                else:
                    table = msgspec.convert(found, _TableLine)
                    ours = all(one.isidentifier() for one in table.columns) and _OURS.fullmatch(table.table)
                    if not ours or not table.create.startswith(f"CREATE TABLE `{table.table}` ("):
                        raise ValueError("a table is none of Trawl's")
                    yield table, None
    except ValueError as error:  # also what msgspec raises
        raise StorageError(f"the database in the backup is damaged: {error}") from error
    if end != count:
        raise StorageError("the database in the backup is damaged: its end is missing")


def _drop(connection: Connection, names: Collection[str]) -> None:
    if names:
        connection.execute(text("DROP TABLE " + ", ".join(f"`{name}`" for name in sorted(names))))


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
    with database.reading() as connection:
        there = set(inspect(connection).get_table_names())
    ours = sorted(there & (set(metadata.tables) | {MIGRATIONS_TABLE, ROWS, operator_states.name}))
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
