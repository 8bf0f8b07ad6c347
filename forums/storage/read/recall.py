"""Records of threads, put back from the database where Redis has forgotten them: known threads are not fetched again."""

from __future__ import annotations

import logging
from itertools import islice
from typing import TYPE_CHECKING, Any

from sqlalchemy import or_, select

from forums.state.database_identity import DatabaseClaim
from forums.state.forum_states import FORUM_DETAIL
from forums.state.thread_records import CHUNK, ThreadRecord, most_records, put_back, short_token
from forums.storage.schema.tables import checks
from redis_components.admin.crawl_records import keys_in

if TYPE_CHECKING:
    import redis

    from forums.storage.database import Database

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
