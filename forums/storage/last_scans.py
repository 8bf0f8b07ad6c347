"""Number of scanned forums and time of the last scan, from the database alone, without Redis."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, select

from .database import Database
from .tables import scans


@dataclass(frozen=True, kw_only=True)
class LastScans:
    """Scanned forums of one site, or of all."""

    forums: int
    at: datetime | None  # end of the newest scan; None: there was none


def last_scans(database: Database, site: str | None = None) -> LastScans:
    """Summarize the stored scan reports. Raises StorageError."""
    forums = select(scans.c.site, scans.c.forum_id, func.max(scans.c.finished_at).label("at")).group_by(
        scans.c.site, scans.c.forum_id
    )
    of_site = (forums if site is None else forums.where(scans.c.site == site)).subquery()
    (row,) = database.stream(select(func.count(), func.max(of_site.c.at)).select_from(of_site))
    return LastScans(forums=row[0], at=row[1])
