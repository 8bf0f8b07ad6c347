"""Number of pages of a site's newest messages, estimated from the stored messages."""

from __future__ import annotations

import math

from sqlalchemy import func, select

from forums.records.start_tasks import RECENT

from .database import Database
from .tables import comments, posts, scans


def depth_of(database: Database, site: str, most: int) -> int:
    """Return the number of pages of the newest messages, at most `most`: the pages that the stored messages fill, at the page
    size of the last look at them; 0 before the first look. Raises StorageError.
    """
    looks = select(scans.c.threads, scans.c.pages).where(scans.c.site == site, scans.c.forum_id == RECENT, scans.c.threads > 0)
    with database.translated(), database.engine.connect() as connection:
        last = connection.execute(looks.order_by(scans.c.started_at.desc()).limit(1)).one_or_none()
        rows = last.threads // max(1, last.pages) if last is not None else 0
        if rows < 1:
            return 0
        stored = 0
        for table in (comments, posts):
            some = select(table.c.id).where(table.c.site == site).limit(most * rows).subquery()
            stored += connection.execute(select(func.count()).select_from(some)).scalar_one()
    return min(most, math.ceil(stored / rows))
