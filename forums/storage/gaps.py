"""Gaps of the list scans: where threads may have passed unseen between two scans of a forum, until a deeper one has closed them.

A scan goes on until it meets what the one before had seen. One that reaches its limit first leaves a gap: between the oldest
thread that it saw and the newest that was known. A later scan closes it when it went past the lower end and met what was
known, or came to the end of the list. Sites that tell no times are measured in pages.
Everything is worked out from the table `scans`, so scans may arrive in any order.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Row, and_, func, or_, select, update

from forums.records.stored import Scan

from .fleet_events import FleetKind, gap_change
from .row_changes import Change
from .tables import gaps, scans

GAP = "gap"


def find_gaps(connection: Connection, stored: Sequence[Scan], changes: list[Change]) -> None:
    """Open a gap for each scan that left one, and look which gaps of the same forums are closed; both go into `changes`."""
    for site, forum_id in sorted({(scan.site, scan.forum_id) for scan in stored}):
        since = min(scan.started_at for scan in stored if (scan.site, scan.forum_id) == (site, forum_id))
        changes += _open(connection, site, forum_id, since)
        first = min(scan.finished_at for scan in stored if (scan.site, scan.forum_id) == (site, forum_id))
        may_change = or_(gaps.c.closed_at.is_(None), gaps.c.closed_at > first, gaps.c.opened_at > first)
        for gap in connection.execute(select(gaps).where(_of(gaps, site, forum_id), may_change)).all():
            changes += _measure(connection, gap)


def _of(table: Any, site: str, forum_id: str) -> ColumnElement[bool]:
    return and_(table.c.site == site, table.c.forum_id == forum_id)


def _open(connection: Connection, site: str, forum_id: str, since: datetime) -> list[Change]:
    """A row for each scan since then that left a gap; one that has become another since (a scan is told twice) has none."""
    left = select(scans).where(_of(scans, site, forum_id), scans.c.started_at >= since, scans.c.outcome == GAP)
    found = connection.execute(left).all()
    known = set(connection.scalars(select(gaps.c.opened_at).where(_of(gaps, site, forum_id), gaps.c.opened_at >= since)))
    opened = [scan for scan in found if scan.started_at not in known]
    rows = [
        {"site": site, "forum_id": forum_id, "opened_at": scan.started_at, "pages": scan.pages, "reason": scan.reason}
        for scan in opened
    ]
    if rows:
        connection.execute(gaps.insert(), rows)
    return [
        gap_change(_Named(site, forum_id, scan.started_at), FleetKind.OPENED, scan.finished_at, _opened(scan)) for scan in opened
    ]


class _Named(NamedTuple):
    site: str
    forum_id: str
    opened_at: datetime


def _opened(scan: Row[*tuple[Any, ...]]) -> str:
    why = f": {scan.reason}" if scan.reason else ""
    return f"board {scan.forum_id}: threads may be missing, a scan of {scan.pages:,} pages did not reach what was known{why}"


def _measure(connection: Connection, gap: Row[*tuple[Any, ...]]) -> list[Change]:
    """Work out both ends of a gap, and when it was closed; returns the change where it closed now."""
    mine = _of(scans, gap.site, gap.forum_id)
    itself = mine & (scans.c.started_at == gap.opened_at)
    upper = connection.scalar(select(scans.c.oldest_at).where(itself))
    before = mine & (scans.c.started_at < gap.opened_at) & (scans.c.outcome != "failed")
    lower = connection.scalar(select(func.max(scans.c.newest_at)).where(before))
    later = mine & (scans.c.started_at > gap.opened_at)
    closed = connection.scalar(select(func.min(scans.c.finished_at)).where(later, closes(gap.pages, upper, lower)))
    values = {"newest_at": upper, "oldest_at": lower, "closed_at": closed}
    if values != {name: getattr(gap, name) for name in values}:
        connection.execute(
            update(gaps).where(_of(gaps, gap.site, gap.forum_id), gaps.c.opened_at == gap.opened_at).values(values)
        )
    return _closing(gap, closed)


def _closing(gap: Row[*tuple[Any, ...]], closed: datetime | None) -> list[Change]:
    """The change where it is closed now and was not, or the other way round: a scan that came late may do that."""
    if (closed is None) == (gap.closed_at is None):
        return []
    board = f"board {gap.forum_id}"
    if closed is None:
        version = int(gap.closed_at.timestamp()) + 1
        said = f"{board}: open again, a scan that came late tells of more"
        return [gap_change(gap, FleetKind.OPENED, gap.closed_at, said, version=version)]
    said = f"{board}: closed by a deeper scan after {(closed - gap.opened_at).total_seconds() / 60:,.0f} min"
    return [gap_change(gap, FleetKind.CLOSED, closed, said, version=int(closed.timestamp()))]


def closes(pages: int, upper: datetime | None, lower: datetime | None) -> ColumnElement[bool]:
    """Whether a later scan closes a gap: one left by a scan of so many pages, with these ends."""
    if lower is not None:
        deep = scans.c.oldest_at <= lower
    elif upper is not None:  # nothing was known before it
        deep = scans.c.oldest_at < upper
    else:
        deep = scans.c.oldest_at.is_(None) & (scans.c.pages > pages)
    return and_(scans.c.outcome == "complete", or_(scans.c.stopped == "end", (scans.c.stopped == "overlap") & deep))
