"""Records of the fleet in the database: the history of its crawler processes, the positions up to which Redis streams were
copied into the event log, and a copy of the operators' settings.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from sqlalchemy import Column, Connection, MetaData, Select, Table, delete, insert, inspect, select, update
from sqlalchemy.schema import CreateTable

from workers.state.history import LOST, MemberRow, RunRow, Wanted

from .database import Database
from .schema.tables import crawler_runs as runs
from .schema.tables import event_outputs as outputs
from .schema.tables import run_members as members
from .schema.times import NAME, TEXT, UtcDateTime
from .write.event_log import Change, Position, append, lock_writers, lost_runs, note_position, reserved
from .write.upsert import Refused, store_newest

MOST_ROWS = 200_000  # of any age: a fleet whose crawlers end every second must not fill the disk
MOST_MEMBERS, MEMBER_DAYS = 1_000_000, 400
MOST_OPEN = 1_000  # limit of runs without an end that are checked


class RunHistory:
    """The tables `crawler_runs` and `run_members` of an open database. Raises StorageError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def write(self, rows: Sequence[RunRow]) -> list[Refused]:
        """Upsert by id; of two states the later one stays."""
        return self._database.write(rows)

    def latest(self, wanted: Wanted, limit: int) -> list[RunRow]:
        """Return the latest runs that match, the youngest first."""
        query = select(runs).order_by(runs.c.started_at.desc(), runs.c.id.desc()).limit(limit)
        for column, value in ((runs.c.spider, wanted.spider), (runs.c.number, wanted.number), (runs.c.outcome, wanted.outcome)):
            if value is not None:
                query = query.where(column == value)
        if wanted.since is not None:
            query = query.where(runs.c.started_at >= wanted.since)
        return self._select(query)

    def write_members(self, rows: Sequence[MemberRow]) -> None:
        """Upsert by run and spider."""
        if rows:
            with self._database.writing() as connection:
                store_newest(connection, members, rows)

    def members(self, spider: str, group: str | None, limit: int) -> list[MemberRow]:
        """Return the latest outcomes of a spider, or those in runs of a group, the youngest first."""
        query = select(members).where(members.c.spider == spider).order_by(members.c.ended_at.desc()).limit(limit)
        query = query.where(members.c.of_group == group) if group is not None else query
        return [MemberRow(**row._mapping) for row in self._database.rows(query)]

    def without_end(self) -> list[RunRow]:
        """Return runs whose end was not reported, the youngest first, including runs marked as lost."""
        return self._select(select(runs).where(runs.c.ended_at.is_(None)).order_by(runs.c.started_at.desc()).limit(MOST_OPEN))

    def mark(self, ids: Collection[str], outcome: str | None) -> None:
        """Mark runs without an end as `lost`, or (None) as running again. An end that is reported later overrides the mark."""
        if ids:
            with self._database.writing() as connection:
                lock_writers(connection)
                chosen = runs.c.id.in_(sorted(ids)) & runs.c.ended_at.is_(None)
                changed = connection.execute(select(runs).where(chosen)).all()  # MySQL has no UPDATE … RETURNING
                connection.execute(update(runs).where(chosen).values(outcome=outcome))
                append(connection, lost_runs(changed) if outcome == LOST else [])

    def prune(self, now: datetime, days: float) -> int:
        """Drop runs that began more than `days` ago, and the oldest above 200,000; members of runs after 400 days, and the oldest
        above a million. Return their number.
        """
        before = self._prune(runs.c.started_at, now - timedelta(days=days), MOST_ROWS)
        return before + self._prune(members.c.ended_at, now - timedelta(days=max(days, MEMBER_DAYS)), MOST_MEMBERS)

    def _prune(self, age: Column[datetime], before: datetime, most: int) -> int:
        oldest = select(age).order_by(age.desc()).offset(most).limit(1)
        with self._database.reading() as connection:
            bound = max(filter(None, (before, connection.execute(oldest).scalar())))
            if connection.execute(select(age).where(age <= bound).limit(1)).scalar() is None:
                return 0  # nearly always: do not lock out the writers
        with self._database.writing() as connection:
            return connection.execute(delete(age.table).where(age <= bound)).rowcount

    def _select(self, query: Select[*tuple[Any, ...]]) -> list[RunRow]:
        return [RunRow(**row._mapping) for row in self._database.rows(query)]


def stream_position(database: Database, key: str) -> Position | None:
    """Return the position up to which a Redis stream was copied into the log; None if it never was. Raises StorageError."""
    with database.reading() as connection:
        return _position(connection, key)


def log_stream(database: Database, key: str, after: Position | None, to: Position, changes: Sequence[Change]) -> bool:
    """Append changes read from a stream up to `to`, if its stored position still is `after`; else write nothing and return False.
    The position is a row of `event_outputs` with a name that no output can have. Raises StorageError.
    """
    with database.writing() as connection:
        lock_writers(connection)
        if _position(connection, key) != after:
            return False
        note_position(connection, key, to.seq, to.place)
        append(connection, changes)
    return True


def _position(connection: Connection, key: str) -> Position | None:
    row = connection.execute(select(outputs.c.seq, outputs.c.place).where(outputs.c.name == reserved(key))).first()
    return None if row is None else Position(*row)


operator_states = Table(
    "operator_state",
    MetaData(),
    Column("namespace", NAME, primary_key=True),
    Column("kept_at", UtcDateTime, nullable=False),
    Column("state", TEXT, nullable=False),
)
OperatorState = dict[str, dict[str, str]]


def write_operator_state(database: Database, namespace: str, state: OperatorState) -> None:
    """Replace the row of a namespace. Raises StorageError."""
    text = msgspec.json.encode(state, order="sorted").decode()
    with database.writing() as connection:
        connection.execute(CreateTable(operator_states, if_not_exists=True))
        connection.execute(delete(operator_states).where(operator_states.c.namespace == namespace))
        connection.execute(insert(operator_states).values(namespace=namespace, kept_at=datetime.now(UTC), state=text))


def read_operator_state(database: Database, namespace: str) -> OperatorState:
    """Return the last written state; {} if there is none or it is unreadable. Raises StorageError."""
    with database.reading() as connection:
        if not inspect(connection).has_table(operator_states.name):
            return {}
        text = connection.scalar(select(operator_states.c.state).where(operator_states.c.namespace == namespace))
    try:
        return msgspec.json.decode(text or "{}", type=OperatorState)
    except msgspec.MsgspecError:
        return {}
