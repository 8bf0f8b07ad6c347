"""History and state of the fleet, moved from Redis into the database.

Outcomes of members of runs, and actions of operators and of the fleet (the audit, and the notes of `state/reports.py`) as events.

The position in each stream of actions is stored in the database, in the transaction that writes the events, so each entry becomes
one event, even if a writer dies or two run at once. A stream that is new to the database is read from its end.
"""

from __future__ import annotations

import logging
import shlex
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import redis
from sqlalchemy import Connection, delete, select

from forums.environment import Events
from redis_components.errors import ConfigError
from redis_components.server.printable import in_one_line
from redis_components.server.untrusted_values import decoded
from workers.state.group_runs import EndedMember, Verdict
from workers.state.history import ended_members, readable_members, settle_members
from workers.state.keys import MOST_WAITING, FleetKeys
from workers.state.registry import Registry
from workers.state.reports import Act, Note

from .database import Database
from .read.event_reader import EventLog
from .schema.tables import event_outputs as outputs
from .schema.tables import run_members as members
from .write.changes import Change, FleetKind, FleetRow, Position, lock_writers, note_position, reserved
from .write.upsert import append, newest

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


logger = logging.getLogger(__name__)


BATCH = 200
MOST_BATCHES = 2 * MOST_WAITING // BATCH  # in a round: entries may be added faster than they are moved
PRUNE_S = 600.0

_pruned_at: dict[str, float] = {}  # by database, of this process


def store_members(client: redis.Redis, database: Database) -> None:
    """Move members of runs that are over into the (open) database.

    Raises StorageError and `redis.RedisError`; nothing is lost then.
    """
    history = RunHistory(database)
    for _ in range(MOST_BATCHES):
        if not (entries := ended_members(client, BATCH)):
            break
        history.write_members(readable_members(entries))
        settle_members(client, entries)


def prune(database: Database) -> None:
    """Drop old members of runs and old events, at most once in ten minutes. Raises StorageError, and ConfigError for a wrong
    TRAWL_EVENTS_DAYS.
    """
    if time.monotonic() - _pruned_at.get(database.name, -PRUNE_S) < PRUNE_S:
        return
    _pruned_at[database.name] = time.monotonic()
    RunHistory(database).prune(datetime.now(UTC))
    if dropped := EventLog(database).prune(Events.read().events_days):
        logger.info("%s: the events of %d transactions were older than TRAWL_EVENTS_DAYS", database.name, dropped)


_AT_ONCE = 500
_MOST_STEPS = 20  # in a round; the rest waits for the next one
_LONGEST = 1_000  # characters of a sentence


def log_fleet_notes(client: redis.Redis, database: Database) -> int:
    """Log the new entries; return the number of events. Raises StorageError and `redis.RedisError`; nothing is lost then."""
    number = 0
    for key in (FleetKeys().audit(), FleetKeys().notes()):
        try:
            number += _move(client, database, key)
        except (redis.ResponseError, ConfigError) as error:  # a foreign key or id: the writer's next steps must go on
            Registry(client).report_error(key, f"none of its entries becomes an event: {error}")
    return number


def _move(client: redis.Redis, database: Database, key: str) -> int:
    after = stream_position(database, key)
    if after is None:
        last: Any = client.xrevrange(key, count=1)
        log_stream(database, key, None, Position.parse(last[0][0].decode() if last else "0-0"), [])
        return 0
    number = 0
    for _ in range(_MOST_STEPS):
        entries: Any = client.xrange(key, min=f"({max(after.seq, 0)}-{max(after.place, 0)}", count=_AT_ONCE)
        if not entries:
            break
        found = [change for id_, fields in entries if (change := _change(id_.decode(), fields or {})) is not None]
        to = Position.parse(entries[-1][0].decode())
        if not log_stream(database, key, after, to, found):
            break  # another writer copies it
        number += len(found)
        after = to
    return number


def _change(id_: str, fields: dict[bytes, bytes]) -> Change | None:
    """Return an entry of the audit or a note as a change; None if it is not Trawl's."""
    try:
        one = _of_act(Act.from_json(fields[b"act"])) if b"act" in fields else Note.from_json(fields[b"note"])
        row, kind = FleetRow(one.about), FleetKind(one.type)
    except (ValueError, KeyError):
        return None
    return Change(row, one.site, id_, "", 1, kind, "", sentence=in_one_line(one.said)[:_LONGEST], at=one.at)


def _of_act(act: Act) -> Note:
    outcome = f": {act.outcome}" if act.outcome else ""
    return Note(about=FleetRow.FLEET, type=FleetKind.CHANGED, said=f"{shlex.join(act.what)} by {act.by}{outcome}", at=act.at)
