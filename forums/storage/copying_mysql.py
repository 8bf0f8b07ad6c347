"""Backup of Trawl's tables in MySQL or MariaDB into one file, and restore, without programs of the server.

The file has a line of JSON for each table (its name, its `CREATE TABLE`, its columns), followed by a line for each of its rows,
all of one moment; the last line has the number of rows. A restore fills new tables, and one atomic `RENAME TABLE` swaps all of
them with the existing tables.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import Connection, inspect, text

from .database import Database
from .engine import WRITING
from .errors import StorageError

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
            rows = connection.exec_driver_sql(f"SELECT * FROM `{name}`")  # noqa: S608 - names are ours
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
        lines = _lines(copy)
        while rows := list(islice(lines, _ROWS_AT_ONCE)):
            for table, batch in _by_table(rows):
                if isinstance(batch, _TableLine):
                    names.append(table)
                    create = batch.create.replace(f"`{table}`", f"`{_NEW}{table}`", 1)
                    connection.exec_driver_sql(create, execution_options={"no_parameters": True})
                else:
                    insert = f"INSERT INTO `{_NEW}{table}` VALUES ({', '.join(['%s'] * len(batch[0]))})"  # noqa: S608 - names are checked
                    connection.exec_driver_sql(insert, batch)
            connection.commit()
        moves = [f"`{name}` TO `{_OLD}{name}`" for name in names if name in there]
        moves += [f"`{_NEW}{name}` TO `{name}`" for name in names]
        connection.execute(text("RENAME TABLE " + ", ".join(moves)))
        _drop(connection, [_OLD + name for name in names if name in there])


def _by_table(lines: list[tuple[_TableLine, tuple[Any, ...] | None]]) -> Iterator[tuple[str, Any]]:
    """Yield the name of each table with its header line, or with a batch of its consecutive rows."""
    batch: list[tuple[Any, ...]] = []
    for place, (table, row) in enumerate(lines):
        if row is None:
            yield table.table, table
            continue
        batch.append(row)
        following = lines[place + 1] if place + 1 < len(lines) else None
        if following is None or following[1] is None:
            yield table.table, batch
            batch = []


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
                    if not _OURS.fullmatch(table.table) or not table.create.startswith(f"CREATE TABLE `{table.table}` ("):
                        raise ValueError("a table is none of Trawl's")
                    yield table, None
    except ValueError as error:  # also what msgspec raises
        raise StorageError(f"the database in the backup is damaged: {error}") from error
    if end != count:
        raise StorageError("the database in the backup is damaged: its end is missing")


def _drop(connection: Connection, names: Collection[str]) -> None:
    if names:
        connection.execute(text("DROP TABLE " + ", ".join(f"`{name}`" for name in sorted(names))))
