"""How many pages of the newest messages a site has, by what is stored of it."""

from __future__ import annotations

import math

from sqlalchemy import func, select

from forums.records.start_tasks import RECENT

from .database import Database
from .tables import comments, posts, scans


def depth_of(database: Database, site: str, most: int) -> int:
    """How many pages of the newest messages there are, at most `most`: as many as the stored messages fill, with as many on each
    as the last look at them saw; 0 where nobody has looked yet. Raises StorageError.
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
