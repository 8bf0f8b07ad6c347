"""Delays of posts and comments from publication to storage, by forum."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import and_, func, or_, select

from .database import Database
from .tables import comments, posts, scans


@dataclass(frozen=True, kw_only=True)
class Delay:
    """Seconds from `created_at` to `first_seen_at`, over `number` posts and comments."""

    number: int
    median_s: float
    p90_s: float


def delays(database: Database, since: datetime, site: str | None = None) -> dict[str, Delay]:
    """Return the delays of posts and comments published since `since`, by `<site>/<forum>`.

    Posts and comments older than the first scan of their forum are left out, since they could not be read in time. Raises
    StorageError.
    """
    first = func.min(scans.c.started_at).label("at")
    watched = select(scans.c.site, scans.c.forum_id, first).group_by(scans.c.site, scans.c.forum_id).subquery()
    of_forum = and_(posts.c.site == watched.c.site, posts.c.forum_id == watched.c.forum_id)
    of_post = and_(comments.c.site == posts.c.site, comments.c.post_id == posts.c.id)
    opened = select(posts.c.site, posts.c.forum_id, posts.c.created_at, posts.c.first_seen_at).join(watched, of_forum)
    replies = (
        select(posts.c.site, posts.c.forum_id, comments.c.created_at, comments.c.first_seen_at)
        .join(watched, of_forum)
        .join(comments, of_post)
        .where(or_(posts.c.last_reply_at >= since, posts.c.last_reply_at.is_(None)))
    )
    found: dict[str, list[float]] = defaultdict(list)
    for query, table in ((opened, posts), (replies, comments)):
        recent = query.where(table.c.created_at >= since, table.c.created_at >= watched.c.at)
        for row in database.stream(recent if site is None else recent.where(posts.c.site == site)):
            waited = (row.first_seen_at - row.created_at).total_seconds()
            found[f"{row.site}/{row.forum_id}"].append(max(0.0, waited))
    return {name: _delay(sorted(waits)) for name, waits in found.items()}


def _delay(waits: list[float]) -> Delay:
    def at(share: float) -> float:
        return waits[max(0, math.ceil(share * len(waits)) - 1)]

    return Delay(number=len(waits), median_s=at(0.5), p90_s=at(0.9))
