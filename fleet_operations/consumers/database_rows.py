"""Writes items as rows of a table, and distinguishes a row that a database refuses from a database that fails: the first is set
aside, the second is waited for.

A failing database taken for a refused row would throw good items away: an unknown error counts as a failing database.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.dialects import mysql, postgresql, sqlite
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, StatementError

from redis_components.errors import ConfigError
from redis_components.items.stream import by_halves
from redis_components.server.printable import masked

from .consume import Item, Sink, SinkOptions, SinkUnavailable
from .mysql_dialect import (
    CONNECT_ARGS,
    DRIVER,
    MYSQL,
    ROW_CODES,
    LongText,
    Varchar,
    error_code,
    has_other_driver,
    most_bytes,
    sent_bytes,
    why_too_large,
)

# data exception, integrity violation, program limit (index row too long), raised by a trigger
_SQLSTATES = ("22", "23", "54", "P0")
_SQLITE_CODES = (sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH)


def is_of_a_row(error: Exception) -> bool:
    """Return True if the database refused a row, and the others may be stored without it."""
    cause = cause_of(error)
    if isinstance(error, DBAPIError) and error.connection_invalidated:
        return False
    sqlstate = getattr(cause, "sqlstate", None)
    sqlite_code = getattr(cause, "sqlite_errorcode", None)
    if sqlstate is not None:
        return bool(sqlstate.startswith(_SQLSTATES))
    if code := error_code(cause):
        return code in ROW_CODES
    if sqlite_code is not None:
        return sqlite_code & 0xFF in _SQLITE_CODES  # the low byte is the class of the extended code
    # the driver, or a column's type, could not convert the value for the database
    return isinstance(error, DataError | IntegrityError) or isinstance(cause, ValueError | OverflowError | TypeError)


def cause_of(error: Exception) -> BaseException:
    """Return the driver's own exception."""
    return error.orig if isinstance(error, StatementError) and error.orig is not None else error


MOST_COLUMNS = 200
LONGEST_NAME = 60
KEY_CHARS = 500  # of a key in MySQL, which cannot index a text of any length
_KINDS: dict[type, Any] = {bool: sa.Boolean, int: sa.BigInteger, float: sa.Double}
_INT64 = 2**63
_INTEGER = re.compile(r"-?\d{1,18}", re.ASCII)


class DatabaseRows(Sink):
    """Writes items to `table`. With `key`, an item replaces the fields of the row that has the same value there."""

    def __init__(self, url: str, table: str, key: str = "") -> None:
        self._shown, self._name, self._key = masked(url), table, key
        try:
            self._engine = _engine(sa.make_url(url))
        except (sa.exc.ArgumentError, ImportError) as error:
            raise ConfigError(f"{self._shown}: {error}: correct the URL, or install the database's driver") from None
        self._table: sa.Table | None = None

    def write(self, items: Sequence[Item]) -> dict[int, str]:
        """Store them in one transaction."""
        refused: dict[int, str] = {}
        rows = {one.place: row for one in items if (row := self._row(one, refused))}
        if not rows:
            return refused
        try:
            with self._engine.begin() as connection:
                table = self._table_for(connection, rows)
                ready = self._fitting(table, rows, refused)
                self._insert(connection, table, ready, refused)
        except (sa.exc.OperationalError, sa.exc.InterfaceError, sa.exc.TimeoutError) as error:
            self._table = None
            raise SinkUnavailable(f"{self._shown}: {_message(error)}") from None
        except sa.exc.SQLAlchemyError as error:
            raise ConfigError(f"{self._shown}, table {self._name}: {_message(error)}") from None
        return refused

    def known(self, values: Sequence[str]) -> set[str]:
        """Return those of the values that rows have in the column of the key. Raises SinkUnavailable, ConfigError."""
        try:
            with self._engine.connect() as connection:
                if self._table is None and sa.inspect(connection).has_table(self._name):
                    self._table = sa.Table(self._name, sa.MetaData(), autoload_with=connection)
                if self._table is None:
                    return set()  # nothing is stored yet
                if self._key not in self._table.columns:
                    names = ", ".join(self._table.columns.keys())
                    raise ConfigError(
                        f"{self._shown}, table {self._name}: there is no column {self._key!r:.80}, only {names:.300}"
                    )
                column = self._table.columns[self._key]
                is_number = isinstance(column.type, sa.Integer)
                wanted = [int(one) if is_number else one for one in values if not is_number or _INTEGER.fullmatch(one)]
                return {str(one) for one in connection.scalars(sa.select(column).where(column.in_(wanted)))}
        except sa.exc.SQLAlchemyError as error:
            raise SinkUnavailable(f"{self._shown}: {_message(error)}") from None

    def close(self) -> None:
        """Close its connections."""
        self._engine.dispose()

    def _row(self, item: Item, refused: dict[int, str]) -> dict[str, Any] | None:
        row = item.value
        if not isinstance(row, dict):
            refused[item.place] = "it is not an object with fields, so it cannot be a row"
        elif not row:
            refused[item.place] = "it has no fields"
        elif self._key and row.get(self._key) is None:
            refused[item.place] = f"it has no field {self._key!r}, by which rows are found"
        elif wrong := [name for name in row if not 0 < len(name) <= LONGEST_NAME or "\0" in name]:
            refused[item.place] = f"the field {wrong[0]!r:.80} cannot be a column: names have 1 to {LONGEST_NAME} characters"
        else:
            return {name: msgspec.json.encode(one).decode() if isinstance(one, list | dict) else one for name, one in row.items()}
        return None

    def _table_for(self, connection: sa.Connection, rows: Mapping[int, Mapping[str, Any]]) -> sa.Table:
        """Return the table with a column for each field, made or widened where need be, up to `MOST_COLUMNS`."""
        if self._table is None and sa.inspect(connection).has_table(self._name):
            self._table = sa.Table(self._name, sa.MetaData(), autoload_with=connection)
            self._check_key(connection)
        known = {one.name.lower() for one in self._table.columns} if self._table is not None else set[str]()
        new: dict[str, sa.Column[Any]] = {}
        for row in rows.values():
            for name, value in row.items():
                if name.lower() not in known and len(known) < MOST_COLUMNS and value is not None:
                    known.add(name.lower())
                    new[name] = self._column(name, value)
        if self._table is None:
            if self._key and self._key not in new:
                new = {self._key: self._column(self._key, next(iter(rows.values()))[self._key]), **new}
            self._table = sa.Table(self._name, sa.MetaData(), *new.values())
            self._table.create(connection)
        elif new:
            quote = connection.dialect.identifier_preparer
            for name, column in new.items():
                kind = column.type.compile(connection.dialect)
                connection.execute(sa.text(f"ALTER TABLE {quote.quote(self._name)} ADD COLUMN {quote.quote(name)} {kind}"))
            self._table = sa.Table(self._name, sa.MetaData(), autoload_with=connection)
        return self._table

    def _column(self, name: str, value: Any) -> sa.Column[Any]:
        kind = _KINDS.get(type(value), sa.Text)
        if kind is sa.Text and self._engine.dialect.name == "mysql":
            kind = Varchar(KEY_CHARS) if name == self._key else LongText()
        return sa.Column(name, kind, primary_key=name == self._key, autoincrement=False)

    def _check_key(self, connection: sa.Connection) -> None:
        if not self._key:
            return
        look = sa.inspect(connection)
        unique = [look.get_pk_constraint(self._name)["constrained_columns"]]
        unique += [one["column_names"] for one in look.get_unique_constraints(self._name)]
        unique += [[str(name) for name in one["column_names"]] for one in look.get_indexes(self._name) if one["unique"]]
        if [self._key] not in unique:
            self._table = None
            raise ConfigError(f"{self._shown}: the column {self._key} of {self._name} is not unique: make a unique index of it")

    def _fitting(
        self, table: sa.Table, rows: Mapping[int, Mapping[str, Any]], refused: dict[int, str]
    ) -> list[tuple[int, dict[str, Any]]]:
        """Return the rows whose values have the types of their columns."""
        columns = {name.lower(): column for name, column in table.columns.items()}
        found = []
        for place, row in rows.items():
            try:
                fitting = {
                    columns[n.lower()].name: _fit(n, v, columns[n.lower()]) for n, v in row.items() if n.lower() in columns
                }
                if left := [n for n, v in row.items() if v is not None and n.lower() not in columns]:
                    raise ValueError(f"the table has {MOST_COLUMNS} columns already, and none for the field {left[0]!r:.80}")
                found.append((place, fitting))
            except ValueError as error:
                refused[place] = str(error)
        return found

    def _insert(
        self, connection: sa.Connection, table: sa.Table, rows: list[tuple[int, dict[str, Any]]], refused: dict[int, str]
    ) -> None:
        for place, row in rows:
            if not row:
                refused[place] = "none of its fields has a value"
        if connection.dialect.name == "mysql":  # PyMySQL cuts a batch of rows, but no row
            most = most_bytes(connection)
            sizes = {place: sent_bytes(row.values(), most) for place, row in rows}
            refused |= {place: why_too_large(size, most) for place, size in sizes.items() if size > most}
        full = [(place, row) for place, row in rows if place not in refused]
        alike = partial(self._insert_alike, connection, table)
        for _, group in groupby(full, key=lambda one: list(one[1])):  # rows with the same fields; their order stays
            refused |= {place: reason for (place, _), reason in by_halves(alike, list(group))}

    def _insert_alike(self, connection: sa.Connection, table: sa.Table, rows: Sequence[tuple[int, dict[str, Any]]]) -> str | None:
        """Insert all rows at once; return why the database refuses one of them."""
        try:
            with connection.begin_nested():
                connection.execute(self._statement(table, rows[0][1]), [row for _, row in rows])
        except sa.exc.StatementError as error:
            if not is_of_a_row(error):
                raise
            return _message(error)
        return None

    def _statement(self, table: sa.Table, row: Mapping[str, Any]) -> Any:
        others = [name for name in row if name != self._key]
        if not self._key:
            return sa.insert(table)
        if self._engine.dialect.name in MYSQL:
            into = mysql.insert(table)
            return into.on_duplicate_key_update({n: into.inserted[n] for n in others or [self._key]})
        made: Any = (postgresql.insert if self._engine.dialect.name == "postgresql" else sqlite.insert)(table)
        if not others:
            return made.on_conflict_do_nothing(index_elements=[self._key])
        return made.on_conflict_do_update(index_elements=[self._key], set_={n: made.excluded[n] for n in others})


def _engine(url: sa.URL) -> sa.Engine:
    if url.get_backend_name() not in MYSQL or has_other_driver(url):
        return sa.create_engine(url, pool_pre_ping=True)
    known = url.set(drivername=DRIVER).difference_update_query(CONNECT_ARGS)
    return sa.create_engine(known, pool_pre_ping=True, isolation_level="READ COMMITTED", connect_args=CONNECT_ARGS)


def _fit(name: str, value: Any, column: sa.Column[Any]) -> Any:
    """Convert a value to its column's type. Raises ValueError."""
    kind = column.type
    if value is None:
        return None
    if isinstance(kind, sa.String):
        return (value if isinstance(value, str) else str(value)).replace("\0", "\ufffd")
    is_number = isinstance(value, int | float)
    if isinstance(kind, sa.Boolean) and not isinstance(value, bool):
        raise ValueError(f"{name} = {value!r:.80}: its column holds true or false")
    if isinstance(kind, sa.Integer) and not (isinstance(value, int) and -_INT64 <= value < _INT64):
        raise ValueError(f"{name} = {value!r:.80}: its column holds whole numbers")
    if isinstance(kind, sa.Numeric | sa.Float) and not is_number:
        raise ValueError(f"{name} = {value!r:.80}: its column holds numbers")
    return value


def _message(error: Exception) -> str:
    """Return the driver's message in one line, without the statement and its values."""
    return " ".join(str(getattr(error, "orig", None) or error).split())[:300]


def opened(place: str, options: SinkOptions) -> DatabaseRows:
    """Open the table of a target."""
    return DatabaseRows(place, options.table, options.key)
