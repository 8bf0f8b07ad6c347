"""Records of the fleet in the database: outcomes of members of its runs, the positions up to which Redis streams were
copied into the event log, and a copy of the operators' settings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from sqlalchemy import Column, Connection, MetaData, Table, delete, insert, inspect, select
from sqlalchemy.schema import CreateTable

from redis_components.server.untrusted_values import decoded
from workers.state.group_runs import EndedMember, Verdict

from .database import Database
from .schema.dialects import NAME, TEXT, UtcDateTime
from .schema.tables import event_outputs as outputs
from .schema.tables import run_members as members
from .write.changes import Change, Position, append, lock_writers, note_position, reserved
from .write.upsert import newest

MOST_MEMBERS, MEMBER_DAYS = 1_000_000, 400


class RunHistory:
    """The table `run_members` of an open database. Raises StorageError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def write_members(self, ended: Sequence[EndedMember]) -> None:
        """Upsert by run and spider."""
        if ended:
            with self._database.writing() as connection:
                connection.execute(newest(members, connection.dialect.name), [_row(one) for one in ended])

    def members(self, spider: str, group: str | None, limit: int) -> list[EndedMember]:
        """Return the latest outcomes of a spider, or those in runs of a group, the youngest first."""
        query = select(members).where(members.c.spider == spider).order_by(members.c.ended_at.desc()).limit(limit)
        query = query.where(members.c.of_group == group) if group is not None else query
        return [_member(row._mapping) for row in self._database.rows(query)]

    def prune(self, now: datetime) -> int:
        """Drop members of runs after 400 days, and the oldest above a million. Return their number."""
        age = members.c.ended_at
        oldest = select(age).order_by(age.desc()).offset(MOST_MEMBERS).limit(1)
        with self._database.reading() as connection:
            bound = max(filter(None, (now - timedelta(days=MEMBER_DAYS), connection.execute(oldest).scalar())))
            if connection.execute(select(age).where(age <= bound).limit(1)).scalar() is None:
                return 0  # nearly always: do not lock out the writers
        with self._database.writing() as connection:
            return connection.execute(delete(members).where(age <= bound)).rowcount


def _row(one: EndedMember) -> dict[str, Any]:
    texts = {"run": one.run, "spider": one.spider, "of_group": one.group, "verdict": str(one.verdict), "reason": one.reason}
    return {
        **{name: text.replace("\0", "") for name, text in texts.items()},
        "pages": one.pages,
        "scraped": one.items,
        "errors": one.errors,
        "seconds": one.seconds,
        "fields": msgspec.json.encode(one.fields).decode(),
        "started_at": datetime.fromtimestamp(one.started_at, UTC),
        "ended_at": datetime.fromtimestamp(one.ended_at, UTC),
    }


def _member(row: Mapping[Any, Any]) -> EndedMember:
    """Return a member as it was, but for its page and traceback."""
    named = {name: row[name] for name in ("run", "spider", "reason", "pages", "errors", "seconds")}
    return EndedMember(
        **named,
        group=row["of_group"],
        verdict=Verdict(row["verdict"]),
        items=row["scraped"],
        fields=decoded(row["fields"], dict[str, float]),
        started_at=row["started_at"].timestamp(),
        ended_at=row["ended_at"].timestamp(),
    )


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
