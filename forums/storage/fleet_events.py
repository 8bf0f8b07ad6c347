"""Events of crawlers, gaps and boards for the event log, computed in the transaction that stores them.

Events of operators, breakers, rolls and the autoscaler are added by `fleet_notes.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, select

from forums.records.stored import RunRow
from workers.process.exit_kinds import ExitKind

from .schema.tables import crawler_runs as runs
from .write.row_changes import Change

ONCE = "once"  # a small crawl inside a worker: there may be thousands, and `trawl history` lists them
LOST = "lost"  # outcome of a run whose end was never reported


class FleetRow(StrEnum):
    """Subject of a fleet event: the value of its `row`."""

    CRAWLER = "crawler"
    GAP = "gap"
    FORUM = "forum"
    BREAKER = "breaker"
    FLEET = "fleet"


class FleetKind(StrEnum):
    """Type of a fleet event: the value of its `type`."""

    STARTED = "started"  # a crawler process
    ENDED = "ended"  # a crawler process, normally
    DIED = "died"  # a crawler process: killed, crashed, hung, out of memory
    LOST = "lost"  # a crawler process whose end was not reported: its node is gone
    OPENED = "opened"  # a gap or a breaker
    CLOSED = "closed"
    NEW = "new"  # a new board
    CHANGED = "changed"  # an action of an operator or of the fleet itself: scale, roll, deploy, limit, …


_VERSION = {FleetKind.STARTED: 1, FleetKind.LOST: 2, FleetKind.ENDED: 3, FleetKind.DIED: 3}
_FAULTS = frozenset(kind.label for kind in ExitKind if not kind.clean)


def run_changes(connection: Connection, items: Iterable[RunRow]) -> list[Change]:
    """Return the changes that storing these runs makes. Call it before they are stored."""
    states = [one for one in items if one.by != ONCE]
    if not states:
        return []
    ids = sorted({one.id for one in states})
    query = select(runs.c.id, runs.c.ended_at).where(runs.c.id.in_(ids))
    known = {id_: ended_at is not None for id_, ended_at in connection.execute(query)}
    found = []
    for one in sorted(states, key=lambda one: one.told_at):
        if one.id not in known:
            known[one.id] = False
            found.append(_of_run(one, FleetKind.STARTED, one.started_at, f"process {one.pid}{_on(one)}"))
        if one.ended_at is not None and not known[one.id]:
            known[one.id] = True
            kind = FleetKind.DIED if one.outcome in _FAULTS else FleetKind.ENDED
            found.append(_of_run(one, kind, one.ended_at, _end_of(one)))
    return found


def lost_runs(rows: Iterable[Any]) -> list[Change]:
    """Return the changes of stored runs that are marked as lost."""
    end = "its node is gone, and its end was not reported"
    return [_of_run(one, FleetKind.LOST, one.told_at, f"process {one.pid}{_on(one)}: {end}") for one in rows if one.by != ONCE]


def gap_change(gap: Any, kind: FleetKind, at: datetime, sentence: str, *, version: int = 1) -> Change:
    """Return the change of a gap that has opened or closed. The table has no versions of gaps: the version of a closing is its
    time in epoch seconds; a gap reopened by a late scan has the version of its former closing plus one.
    """
    return Change(
        row=FleetRow.GAP,
        site=gap.site,
        id=f"{gap.forum_id}/{gap.opened_at:%Y%m%dT%H%M%S}",
        thread="",
        version=version,
        kind=kind,
        hash="",
        forum=gap.forum_id,
        sentence=sentence,
        at=at.timestamp(),
    )


def new_forums(keys: Sequence[tuple[str, str]], seen: dict[tuple[str, str], datetime]) -> list[Change]:
    """Return the changes of boards (site, id) that were not stored before."""
    return [
        Change(
            row=FleetRow.FORUM,
            site=site,
            id=forum_id,
            thread="",
            version=1,
            kind=FleetKind.NEW,
            hash="",
            forum=forum_id,
            sentence=f"board {forum_id}: it was not known",
            at=seen[site, forum_id].timestamp(),
        )
        for site, forum_id in keys
    ]


def _of_run(run: Any, kind: FleetKind, at: datetime, sentence: str) -> Change:
    return Change(
        row=FleetRow.CRAWLER,
        site="",
        id=run.id,
        thread="",
        version=_VERSION[kind],
        kind=kind,
        hash="",
        sentence=f"{run.spider}{'' if run.number is None else f'/{run.number}'}: {sentence}",
        at=at.timestamp(),
    )


def _on(run: Any) -> str:
    return f" on {run.node}" if run.node else ""


def _end_of(run: RunRow) -> str:
    code = f" (signal {-run.exit_code})" if run.exit_code is not None and run.exit_code < 0 else ""
    why = f": {run.reason}" if run.reason else ""
    return f"{run.outcome or 'ended'}{code}, process {run.pid}{_on(run)}, after {run.pages:,} pages{why}"
