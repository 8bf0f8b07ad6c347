"""Columns and statements in the form of each kind of database: types of names and texts, upserts, many rows at once.

A statement is executed with many rows without SQLAlchemy's work for each row. This reads a few attributes of SQLAlchemy's
compiled statements; `tests/contract/test_sqlalchemy_internals.py` asserts each. Measurements and alternatives:
docs/decisions/0025-storage.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import sqlalchemy
from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Delete,
    Dialect,
    Insert,
    Text,
    Update,
    bindparam,
    case,
)
from sqlalchemy.dialects import mysql, postgresql, sqlite
from sqlalchemy.sql.visitors import iterate
from sqlalchemy.types import TypeEngine

from fleet_operations.consumers.mysql_dialect import LongText, Varchar

_NAME_CHARS = 255  # in MySQL at most 1,020 bytes: three of them fit into an index row, with any ids
_WORD_CHARS = 64

# Names and ids sort by their bytes, as in SQLite: a locale's order is slower, differs between machines, and a new version of the
# C library that changes it corrupts PostgreSQL's indexes.
_BYTES = Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")

# They must not change: tables that are there have them.
NAME: TypeEngine[str] = _BYTES.with_variant(Varchar(_NAME_CHARS), "mysql")
"""A name or an id."""
SHORT_NAME: TypeEngine[str] = _BYTES.with_variant(Varchar(_WORD_CHARS), "mysql")
"""A part of a key: an enumeration value of Trawl, or a hash."""
TEXT: TypeEngine[str] = Text().with_variant(LongText(), "mysql")
"""Any text without an index."""
WORD: TypeEngine[str] = Text().with_variant(Varchar(_WORD_CHARS), "mysql")
"""An enumeration value of Trawl, in a column with a default: MySQL has no defaults for long texts."""


if TYPE_CHECKING or hasattr(sqlalchemy, "TypedColumns"):
    from sqlalchemy import Named as Named
    from sqlalchemy import Table as Table
    from sqlalchemy import TypedColumns as TypedColumns
else:
    Named = Any

    class TypedColumns:
        """Columns of a table by their names; an annotation with None makes one nullable."""

    def Table(name: str, metadata: sqlalchemy.MetaData, columns: type, **options: Any) -> sqlalchemy.Table:  # noqa: N802
        """Return the table with the columns of a class."""
        found = {key: one for key, one in vars(columns).items() if isinstance(one, sqlalchemy.Column)}
        for key, column in found.items():
            column.name = column.key = key
            column.nullable = not column.primary_key and "None" in columns.__annotations__[key]
        return sqlalchemy.Table(name, metadata, *found.values(), **options)


Statement = Insert | Update | Delete
Rows = Sequence[tuple[Any, ...]]


def upsert(
    table: Table[Any],
    dialect: str,
    names: Sequence[str],
    changed: Sequence[str] | None = None,
    where: Callable[[Any], ColumnElement[bool]] | None = None,
) -> Insert:
    """Return an INSERT of the columns `names` that updates an existing row.

    `changed`: the columns to update (None: all of `names` outside the key). `where`, given the row to insert, limits the update.
    """
    keys = [column.name for column in table.primary_key.columns]
    others = [name for name in (changed or names) if name not in keys]
    if dialect == "mysql":
        return _mysql_upsert(table, names, others, where)
    insert: Any = postgresql.insert(table) if dialect == "postgresql" else sqlite.insert(table)
    insert = insert.values({name: bindparam(name) for name in names})
    values = {name: insert.excluded[name] for name in others}
    statement: Insert = insert.on_conflict_do_update(
        index_elements=keys, set_=values, where=None if where is None else where(insert.excluded)
    )
    return statement


def _mysql_upsert(
    table: Table[Any], names: Sequence[str], others: Sequence[str], where: Callable[[Any], ColumnElement[bool]] | None
) -> Insert:
    """Build the upsert for MySQL, which has no WHERE in it. MySQL assigns columns one after the other and reads the assigned
    values, so the columns that `where` reads come last.
    """
    insert = mysql.insert(table).values({name: bindparam(name) for name in names})
    if where is None:
        return insert.on_duplicate_key_update([(name, insert.inserted[name]) for name in others])
    condition = where(insert.inserted)
    asked = {str(part.name) for part in iterate(condition) if isinstance(part, Column)}
    values = [(name, case((condition, insert.inserted[name]), else_=table.c[name])) for name in others]
    return insert.on_duplicate_key_update(sorted(values, key=lambda one: one[0] in asked))


def execute_many(connection: Connection, statement: Statement, names: Sequence[str], rows: Rows) -> None:
    """Execute `statement` with each of `rows`, which have the parameters `names` in this order.

    The compiled text is cached by statement, so build each statement once per dialect.
    """
    execute_converted(connection, statement, names, converted(connection, statement, names, rows))


def converted(connection: Connection, statement: Statement, names: Sequence[str], rows: Rows) -> Rows:
    """Convert the values of `rows` for the driver of `connection`."""
    converters = _compiled(statement, connection.dialect).converters
    if not rows or converters.keys().isdisjoint(names):
        return rows
    columns = list(zip(*rows, strict=True))
    for place, name in enumerate(names):
        if convert := converters.get(name):
            columns[place] = tuple(map(convert, columns[place]))
    return list(zip(*columns, strict=True))


def execute_converted(connection: Connection, statement: Statement, names: Sequence[str], rows: Rows) -> None:
    """Execute `statement` with each of `rows`, already converted by `converted`."""
    compiled = _compiled(statement, connection.dialect)
    if compiled.order is None:
        connection.exec_driver_sql(compiled.sql, [dict(zip(names, row, strict=True)) for row in rows])
    elif compiled.order == tuple(names):
        connection.exec_driver_sql(compiled.sql, list(rows))
    else:
        columns = dict(zip(names, zip(*rows, strict=True), strict=True))
        connection.exec_driver_sql(compiled.sql, list(zip(*map(columns.__getitem__, compiled.order), strict=True)))


@dataclass(frozen=True, kw_only=True)
class _Compiled:
    sql: str
    order: tuple[str, ...] | None  # of its parameters; None: the driver takes them by name
    converters: dict[str, Callable[[Any], Any]]  # by parameter: its value for the driver


@lru_cache(maxsize=500)  # a process that opens a database again gets another dialect object
def _compiled(statement: Statement, dialect: Dialect) -> _Compiled:
    compiled: Any = statement.compile(dialect=dialect)
    converters: dict[str, Callable[[Any], Any]] = {}
    for name, bind in compiled.binds.items():
        if (processor := bind.type.bind_processor(dialect)) is not None:
            converters[name] = processor
    order = tuple(compiled.positiontup) if compiled.positional else None
    return _Compiled(sql=str(compiled), order=order, converters=converters)
