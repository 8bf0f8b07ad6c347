"""Threads with a due recheck, leased so that no thread is taken twice."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, extract, func, literal, select, text, update

from .database import Database
from .engine import WRITING
from .tables import posts
from .times import UtcDateTime


@dataclass(frozen=True, kw_only=True)
class DueThread:
    """A thread whose check is due."""

    id: str
    forum_id: str | None
    url: str


def take_due(
    database: Database, site: str, now: datetime, *, limit: int, lease: timedelta, force: bool = False
) -> list[DueThread]:
    """Take at most `limit` threads of a site whose check is due at `now` (`force`: the threads checked longest ago), the most
    overdue first, relative to the time between their checks. A thread is due again after `lease`, unless its check is stored
    before that. Raises StorageError.
    """
    if limit < 1:
        return []
    query = select(posts.c.id, posts.c.forum_id, posts.c.url).where(posts.c.site == site)
    if force:
        query = query.where(posts.c.deleted_at.is_(None)).order_by(
            posts.c.checked_at.is_not(None), posts.c.checked_at, posts.c.id
        )
    else:
        query = query.where(posts.c.next_check_at <= now).order_by(_overdue(database.engine.dialect.name, now).desc(), posts.c.id)
    with database.translated(), database.engine.connect().execution_options(**WRITING) as connection, connection.begin():
        found = [
            DueThread(id=row.id, forum_id=row.forum_id or None, url=row.url) for row in connection.execute(query.limit(limit))
        ]
        if found:
            taken = posts.c.site == site, posts.c.id.in_([one.id for one in found])
            connection.execute(update(posts).where(*taken).values(next_check_at=now + lease))
    return found


def _overdue(dialect: str, now: datetime) -> ColumnElement[float]:
    """Return the time since a thread's last check, as a multiple of its check interval (plus a second, against zero)."""

    def days(moment: Any) -> Any:
        match dialect:
            case "sqlite":
                return func.julianday(moment)
            case "mysql":  # a float: MySQL divides whole numbers to four digits only
                return func.timestampdiff(text("MICROSECOND"), text("'2000-01-01'"), moment) / text("86400e6")
            case _:
                return extract("epoch", moment) / 86_400.0

    checked = days(posts.c.checked_at)
    return (days(literal(now, UtcDateTime)) - checked) / (days(posts.c.next_check_at) - checked + 1 / 86_400)  # type: ignore[no-any-return]
