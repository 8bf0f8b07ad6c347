"""Progress of a crawl since a moment, by the database, for a frozen forum."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ColumnElement, and_, func, not_, or_, select

from forums.storage import Database, checks, posts, scans


def scanned(database: Database, site: str, since: datetime) -> int:
    """Return the number of boards with a complete scan that began after this time."""
    query = select(func.count(func.distinct(scans.c.forum_id))).where(
        scans.c.site == site, scans.c.started_at > since, scans.c.outcome == "complete"
    )
    (number,) = next(database.stream(query))
    return int(number)


def unchecked(database: Database, site: str, since: datetime) -> int:
    """Return the number of threads that since then were not read whole, nor found unchanged by a check, nor found gone."""
    of_post: ColumnElement[bool] = and_(checks.c.site == posts.c.site, checks.c.post_id == posts.c.id)
    unchanged = and_(checks.c.mode == "check", checks.c.started_at >= since, checks.c.whole.is_(False), checks.c.reason.is_(None))
    query = (
        select(func.count())
        .select_from(posts.outerjoin(checks, of_post))
        .where(posts.c.site == site, posts.c.deleted_at.is_(None))
        .where(or_(checks.c.whole_at.is_(None), checks.c.whole_at < since), or_(checks.c.post_id.is_(None), not_(unchanged)))
    )
    (number,) = next(database.stream(query))
    return int(number)
