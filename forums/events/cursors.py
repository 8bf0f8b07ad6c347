"""Progress of each output, and the events that it refused, in the database that holds the events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sqlalchemy import ColumnElement, and_, delete, func, insert, select, update

from forums.storage import Database
from forums.storage.read.event_reader import Event
from forums.storage.schema.tables import event_dead_letters as dead
from forums.storage.schema.tables import event_outputs as outputs
from forums.storage.write.changes import Position
from redis_components.server.printable import in_one_line

MOST_DEAD = 10_000  # of an output; then it waits for an operator
_STUCK_AFTER = timedelta(minutes=5)  # many rounds


@dataclass(frozen=True, kw_only=True)
class Cursor:
    """The state of one output."""

    name: str
    after: Position  # everything up to this position was sent
    failures: int = 0
    retry_at: datetime | None = None
    error: str | None = None
    lost: int = 0
    told_at: datetime | None = None

    def trouble(self, oldest: Event | None, now: datetime) -> str | None:
        """Return why it makes no progress, given the `oldest` event that waits for it; None if it does."""
        if self.error is not None or oldest is None:
            return self.error
        moved_at = max(one for one in (self.told_at, self.retry_at, oldest.stored_at) if one is not None)
        if now - moved_at < _STUCK_AFTER:
            return None
        return f"not moved for {(now - moved_at) // timedelta(minutes=1):,} minutes: trawl status, trawl doctor"


class Cursors:
    """The tables `event_outputs` and `event_dead_letters` of an open database. Raises StorageError.

    A receiver's answer is stored without its control characters: PostgreSQL refuses NUL, which would stop the output.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def all(self) -> dict[str, Cursor]:
        """Return the cursors by the output's name."""
        rows = [dict(row._mapping) for row in self._database.rows(select(outputs).order_by(outputs.c.name))]
        return {row["name"]: Cursor(after=Position(row.pop("seq"), row.pop("place")), **row) for row in rows}

    def create(self, name: str, after: Position) -> Cursor:
        """Insert the cursor of a new output."""
        now = datetime.now(UTC)
        row = {"name": name, "seq": after.seq, "place": after.place, "told_at": now, "failures": 0, "lost": 0}
        with self._database.writing() as connection:
            connection.execute(insert(outputs).values(**row))
        return Cursor(name=name, after=after, told_at=now)

    def advance(self, cursor: Cursor, to: Position, refused: Sequence[tuple[Event, str]] = (), lost: int = 0) -> Cursor | None:
        """Store that everything up to `to` was sent, with the refused events. Returns None, and writes nothing, if another
        process moved the cursor.
        """
        now = datetime.now(UTC)
        values = {"seq": to.seq, "place": to.place, "told_at": now, "failures": 0, "retry_at": None, "error": None}
        with self._database.writing() as connection:
            moved = connection.execute(update(outputs).where(_is(cursor)).values(**values, lost=outputs.c.lost + lost))
            if not moved.rowcount:
                return None
            all_lost = connection.execute(select(outputs.c.lost).where(outputs.c.name == cursor.name)).scalar_one()
            for event, reason in refused:
                key = {"output": cursor.name, "seq": event.at.seq, "place": event.at.place}
                connection.execute(delete(dead).where(and_(*[dead.c[name] == value for name, value in key.items()])))
                connection.execute(insert(dead).values(**key, failed_at=now, reason=in_one_line(reason)))
        return Cursor(name=cursor.name, after=to, lost=all_lost, told_at=now)

    def failed(self, cursor: Cursor, reason: str, wait_s: float) -> None:
        """Store a failure; the next attempt is in `wait_s` seconds."""
        retry_at = datetime.now(UTC) + timedelta(seconds=wait_s)
        values = {"failures": cursor.failures + 1, "retry_at": retry_at, "error": in_one_line(reason)}
        with self._database.writing() as connection:
            connection.execute(update(outputs).where(_is(cursor)).values(**values))

    def hold(self, cursor: Cursor, until: datetime) -> None:
        """Pause the output until `until`."""
        with self._database.writing() as connection:
            connection.execute(update(outputs).where(_is(cursor)).values(retry_at=until))

    def move(self, name: str, to: Position) -> bool:
        """Send everything after `to` again, at once; return True if the output has a cursor."""
        values = {"seq": to.seq, "place": to.place, "failures": 0, "retry_at": None, "error": None}
        with self._database.writing() as connection:
            return connection.execute(update(outputs).where(outputs.c.name == name).values(**values)).rowcount > 0

    def drop(self, name: str) -> None:
        """Delete the cursor of an output, and its refused events."""
        with self._database.writing() as connection:
            connection.execute(delete(outputs).where(outputs.c.name == name))
            connection.execute(delete(dead).where(dead.c.output == name))

    def refused(self, name: str, limit: int = MOST_DEAD) -> list[tuple[Position, datetime, str]]:
        """Return the refused events, oldest first: position, time, reason."""
        query = select(dead.c.seq, dead.c.place, dead.c.failed_at, dead.c.reason).where(dead.c.output == name)
        found = self._database.rows(query.order_by(dead.c.seq, dead.c.place).limit(limit))
        return [(Position(seq, place), at, reason) for seq, place, at, reason in found]

    def counts(self) -> dict[str, int]:
        """Return the number of refused events by output."""
        return {row[0]: row[1] for row in self._database.rows(select(dead.c.output, func.count()).group_by(dead.c.output))}


def _is(cursor: Cursor) -> ColumnElement[bool]:
    return and_(outputs.c.name == cursor.name, outputs.c.seq == cursor.after.seq, outputs.c.place == cursor.after.place)
