"""One statement with many rows, without what SQLAlchemy does for each of them anew."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, Delete, Dialect, Insert, Update

from .times import UtcDateTime, sqlite_text

Statement = Insert | Update | Delete


def execute_many(connection: Connection, statement: Statement, rows: Sequence[dict[str, Any]]) -> None:
    """Execute `statement` with each of `rows`, which name all of its parameters, all in the same order.

    The statement has to be one that is kept (made once for each dialect): its text is.
    """
    execute_tuples(connection, statement, tuple(rows[0]), [tuple(row.values()) for row in rows])


def execute_tuples(connection: Connection, statement: Statement, names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> None:
    """The same, with rows as tuples of the parameters `names`."""
    sql, order, converters = _compiled(statement, connection.dialect)
    if order is None and not converters:
        connection.exec_driver_sql(sql, [dict(zip(names, row, strict=True)) for row in rows])
        return
    columns = dict(zip(names, zip(*rows, strict=True), strict=True))
    for name, convert in converters.items():
        columns[name] = tuple(map(convert, columns[name]))
    if order is None:
        connection.exec_driver_sql(sql, [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)])
    else:
        connection.exec_driver_sql(sql, list(zip(*[columns[name] for name in order], strict=True)))


@lru_cache(maxsize=100)  # a process that opens a database again has another dialect
def _compiled(statement: Statement, dialect: Dialect) -> tuple[str, tuple[str, ...] | None, dict[str, Callable[[Any], Any]]]:
    """Its text, its parameters in their order (None: by name), and how their values become the driver's."""
    compiled: Any = statement.compile(dialect=dialect)
    converters: dict[str, Callable[[Any], Any]] = {}
    for name, bind in compiled.binds.items():
        if isinstance(bind.type, UtcDateTime) and dialect.name == "sqlite":
            converters[name] = sqlite_text
        elif (processor := bind.type.bind_processor(dialect)) is not None:
            converters[name] = processor
    return str(compiled), tuple(compiled.positiontup) if compiled.positional else None, converters
