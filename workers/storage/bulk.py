"""One statement with many rows, without what SQLAlchemy does for each of them anew: half the time of a batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, Delete, Dialect, Insert, Update


def execute_many(connection: Connection, statement: Insert | Update | Delete, rows: Sequence[dict[str, Any]]) -> None:
    """Execute `statement` with each of `rows`, which name all of its parameters. Values in `rows` are changed in place.

    The statement has to be one that is kept (made once for each dialect): its text is.
    """
    sql, names, converters = _compiled(statement, connection.dialect)
    for name, convert in converters:
        for row in rows:
            if (value := row[name]) is not None:
                row[name] = convert(value)
    if names is None:
        connection.exec_driver_sql(sql, list(rows))
    else:
        tuple_of = itemgetter(*names)  # all statements have two parameters or more
        connection.exec_driver_sql(sql, [tuple_of(row) for row in rows])


@lru_cache(maxsize=100)  # a process that opens a database again has another dialect
def _compiled(
    statement: Insert | Update | Delete, dialect: Dialect
) -> tuple[str, tuple[str, ...] | None, list[tuple[str, Callable[[Any], Any]]]]:
    """Its text, its parameters in their order (None: by name), and how their values become the driver's."""
    compiled: Any = statement.compile(dialect=dialect)
    converters = [
        (name, processor) for name, bind in compiled.binds.items() if (processor := bind.type.bind_processor(dialect)) is not None
    ]
    return str(compiled), tuple(compiled.positiontup) if compiled.positional else None, converters
