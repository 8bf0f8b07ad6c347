"""Hook of the writer that stores records of threads and marks of forums in Redis, for the next scans."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

import redis
from sqlalchemy import func, select

from forums.spiders.scan_marks import keep_marks
from forums.state import thread_records
from forums.state.forum_states import FORUM_DETAIL, FORUM_LIST
from forums.state.publication_delays import PublicationDelays
from forums.state.thread_records import ThreadRecord
from forums.storage import Check, Comment, Database, Item, Post, Scan, scans
from redis_components.admin.crawl_records import keys_in

logger = logging.getLogger(__name__)


def remember(client: redis.Redis, items: Sequence[Item]) -> None:
    """Store the records and marks that follow from these stored items. Idempotent.

    A refusal by Redis is logged and ignored: without a record a scan reads more and loses nothing.
    """
    try:
        thread_records.keep(client, keys_in(client, FORUM_DETAIL), _records(items))
        keep_marks(client, keys_in(client, FORUM_LIST), [item for item in items if isinstance(item, Scan)])
    except redis.ResponseError as error:
        logger.warning("Redis does not keep what is stored of threads and forums, so that scans read more: %s", error)


def _records(items: Iterable[Item]) -> dict[str, ThreadRecord]:
    """Return the records of successful readings; failed ones leave the former record."""
    return {
        f"{item.site}/{item.listed_as or item.id}": ThreadRecord(
            token=item.token or "",
            comments=item.comments if item.total is None else item.total,
            last_page=0 if item.gone else max(1, item.last_page),
            last_comment=item.last_comment_id,
            cursor=item.cursor,
            hour=_hour(item.started_at),
            listed=item.listed,
            short=item.short,
            own=item.id if item.listed_as else None,
            asked=item.asked if item.gone else None,
            told_at=_told_at(item),
        )
        for item in items
        if isinstance(item, Check) and (item.reason is None or item.gone)
    }


def _told_at(item: Check) -> int | None:
    """Return the start of a reading that saw more than its list row showed, or that had no list row."""
    more = item.listed is not None and item.reply_count is not None and item.listed > item.reply_count
    return int(item.started_at.timestamp()) if item.token is None or more else None


def _hour(moment: datetime) -> int:
    return int(moment.timestamp() // 3600)


HISTORY_S = 7 * 86_400.0  # items older than this when stored are left out: a board was added, or a backfill runs


class Lateness:
    """Counts the delays of one database's new posts and comments."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._watched: dict[str, datetime] = {}  # site -> when its first scan began

    def count(self, client: redis.Redis, new: Sequence[Item], now: datetime | None = None) -> None:
        """Count these items, stored `now`. Items published before the first scan of their site are left out, since they could
        not be read in time.

        Raises `redis.RedisError`, StorageError.
        """
        stored_at, found = now or datetime.now(UTC), defaultdict[str, list[float]](list)
        for item in new:
            if not isinstance(item, Post | Comment) or item.created_at is None:
                continue
            late = max(0.0, (stored_at - item.created_at).total_seconds())
            since = self._since(item.site)
            if since is not None and item.created_at >= since and late < HISTORY_S:
                found[item.site].append(late)
        if found:
            PublicationDelays(client).add(found)

    def _since(self, site: str) -> datetime | None:
        if site not in self._watched:
            ((first,),) = self._database.stream(select(func.min(scans.c.started_at)).where(scans.c.site == site))
            if first is None:
                return None
            self._watched[site] = first if first.tzinfo else first.replace(tzinfo=UTC)
        return self._watched[site]
