"""Positions up to which Redis streams were copied into the event log, stored with the events themselves."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from sqlalchemy import Connection, insert, select, update

from .database import Database
from .engine import WRITING
from .schema.tables import event_outputs as outputs
from .write.event_log import Position, append, lock_writers
from .write.row_changes import Change


def stream_position(database: Database, key: str) -> Position | None:
    """Return the position up to which a Redis stream was copied into the log; None if it never was. Raises StorageError."""
    with database.translated(), database.engine.connect() as connection:
        return _position(connection, key)


def log_stream(database: Database, key: str, after: Position | None, to: Position, changes: Sequence[Change]) -> bool:
    """Append changes read from a stream up to `to`, if its stored position still is `after`; else write nothing and return False.
    The position is a row of `event_outputs` with a name that no output can have. Raises StorageError.
    """
    values = {"seq": to.seq, "place": to.place, "told_at": datetime.now(UTC)}
    with database.translated(), database.engine.connect().execution_options(**WRITING) as connection, connection.begin():
        lock_writers(connection)
        if _position(connection, key) != after:
            return False
        if after is None:
            connection.execute(insert(outputs).values(name=_reserved(key), failures=0, lost=0, **values))
        else:
            connection.execute(update(outputs).where(outputs.c.name == _reserved(key)).values(**values))
        append(connection, changes)
    return True


def _position(connection: Connection, key: str) -> Position | None:
    row = connection.execute(select(outputs.c.seq, outputs.c.place).where(outputs.c.name == _reserved(key))).first()
    return None if row is None else Position(*row)


def _reserved(key: str) -> str:
    return f"<{key}>"
