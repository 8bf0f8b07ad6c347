"""History of the fleet, moved from Redis into the database: outcomes of members of runs, and as events the actions of operators
and of the fleet (the audit, and the notes of `state/reports.py`).

The position in each stream of actions is stored in the database, in the transaction that writes the events, so each entry becomes
one event, even if a writer dies or two run at once. A stream that is new to the database is read from its end.
"""

from __future__ import annotations

import shlex
import time
from datetime import UTC, datetime
from typing import Any

import redis

from forums.storage import Database, RunHistory
from forums.storage.history import log_stream, stream_position
from forums.storage.write.changes import Change, FleetKind, FleetRow, Position
from redis_components.errors import ConfigError
from redis_components.server.printable import in_one_line
from workers.state.history import ended_members, readable_members, settle_members
from workers.state.keys import MOST_WAITING, FleetKeys
from workers.state.registry import Registry
from workers.state.reports import Act, Note

BATCH = 200
MOST_BATCHES = 2 * MOST_WAITING // BATCH  # in a round: entries may be added faster than they are moved
PRUNE_S = 600.0

_pruned_at: dict[str, float] = {}  # by database, of this process


def store_members(client: redis.Redis, database: Database) -> None:
    """Move members of runs that are over into the (open) database; at intervals drop old ones.

    Raises StorageError and `redis.RedisError`; nothing is lost then.
    """
    history = RunHistory(database)
    for _ in range(MOST_BATCHES):
        if not (entries := ended_members(client, BATCH)):
            break
        history.write_members(readable_members(entries))
        settle_members(client, entries)
    if time.monotonic() - _pruned_at.get(database.name, -PRUNE_S) >= PRUNE_S:
        history.prune(datetime.now(UTC))
        _pruned_at[database.name] = time.monotonic()


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
        log_stream(database, key, None, Position.parse(last[0][0].decode()) if last else Position(0, 0), [])
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
