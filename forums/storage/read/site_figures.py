"""Figures and queries of sites: delays from publication to storage, the last scans, and the threads whose check is due; and the
records of threads, put back where Redis has forgotten them: known threads are not fetched again.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any

from sqlalchemy import ColumnElement, extract, func, literal, or_, select, text, update

from forums import FORUM_DETAIL
from forums.state.database_state import CHUNK, DatabaseClaim, ThreadRecord, most_records, put_back, short_token
from forums.storage.database import Database
from forums.storage.schema.dialects import UtcDateTime
from forums.storage.schema.tables import checks, posts
from redis_components.admin.inspector import keys_in

if TYPE_CHECKING:
    import redis


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
    with database.writing() as connection:
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


logger = logging.getLogger(__name__)


def recall(client: redis.Redis, database: Database) -> int:
    """Put back the records of the newest readings, if Redis knows no database; return their number. Call it before a claim.

    Records written since stay. Safe to run concurrently. Raises StorageError and `redis.RedisError`.
    """
    if DatabaseClaim(client).holder() is not None or database.found_identity() is None:
        return 0
    keys, count = keys_in(client, FORUM_DETAIL), 0
    whole = or_(checks.c.reason.is_(None), checks.c.gone)
    stored = database.stream(select(checks).where(whole).order_by(checks.c.finished_at.desc()).limit(most_records()))
    while rows := list(islice(stored, CHUNK)):
        put_back(client, keys, {f"{row.site}/{row.post_id}": _record(row) for row in rows})
        count += len(rows)
    if count:
        logger.warning("Redis had forgotten the threads; put back from %s: %d", database.name, count)
    return count


def _record(row: Any) -> ThreadRecord:
    started_s = int(row.started_at.timestamp())
    return ThreadRecord(
        token=short_token(row.token or ""),
        comments=row.comments if row.total is None else row.total,
        last_page=0 if row.gone else max(1, row.last_page),
        last_comment=row.last_comment_id,
        cursor=row.cursor,
        hour=started_s // 3600,
        listed=row.listed,
        short=row.short,
        told_at=started_s if row.token is None else None,
    )
