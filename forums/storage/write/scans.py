"""Gaps that stored scans show: threads may have been missed between two scans of a forum, until a deeper scan closes the gap.

A scan goes on until it reaches a thread known from the scan before. If it reaches its limit first, it leaves a gap between the
oldest thread that it saw and the newest known thread. A later scan closes the gap if it read past the lower end and reached known
threads, or reached the end of the list. For sites without times, depth is measured in pages. Everything is computed from the
table `scans`, so scans may arrive in any order.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, and_, func, or_, select, update

from forums.records.stored import Scan
from forums.storage.schema.tables import gaps, scans

GAP = "gap"


def find_gaps(connection: Connection, stored: Sequence[Scan]) -> None:
    """Open a gap for each scan that left one, and close gaps of the same forums."""
    for site, forum_id in sorted({(scan.site, scan.forum_id) for scan in stored}):
        since = min(scan.started_at for scan in stored if (scan.site, scan.forum_id) == (site, forum_id))
        _open(connection, site, forum_id, since)
        first = min(scan.finished_at for scan in stored if (scan.site, scan.forum_id) == (site, forum_id))
        may_change = or_(gaps.c.closed_at.is_(None), gaps.c.closed_at > first, gaps.c.opened_at > first)
        for gap in connection.execute(select(gaps).where(_of(gaps, site, forum_id), may_change)).all():
            _measure(connection, gap)


def _of(table: Any, site: str, forum_id: str) -> ColumnElement[bool]:
    return and_(table.c.site == site, table.c.forum_id == forum_id)


def _open(connection: Connection, site: str, forum_id: str, since: datetime) -> None:
    """Insert a row for each scan since `since` that left a gap; a scan that is stored again gets no second row."""
    left = select(scans).where(_of(scans, site, forum_id), scans.c.started_at >= since, scans.c.outcome == GAP)
    found = connection.execute(left).all()
    known = set(connection.scalars(select(gaps.c.opened_at).where(_of(gaps, site, forum_id), gaps.c.opened_at >= since)))
    rows = [
        {"site": site, "forum_id": forum_id, "opened_at": scan.started_at, "pages": scan.pages, "reason": scan.reason}
        for scan in found
        if scan.started_at not in known
    ]
    if rows:
        connection.execute(gaps.insert(), rows)


def _measure(connection: Connection, gap: Row[*tuple[Any, ...]]) -> None:
    """Update both ends of a gap and its closing time."""
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


def closes(pages: int, upper: datetime | None, lower: datetime | None) -> ColumnElement[bool]:
    """Return the condition that a later scan closes a gap with these ends, left by a scan of `pages` pages."""
    if lower is not None:
        deep = scans.c.oldest_at <= lower
    elif upper is not None:  # nothing was known before it
        deep = scans.c.oldest_at < upper
    else:
        deep = scans.c.oldest_at.is_(None) & (scans.c.pages > pages)
    return and_(scans.c.outcome == "complete", or_(scans.c.stopped == "end", (scans.c.stopped == "overlap") & deep))
