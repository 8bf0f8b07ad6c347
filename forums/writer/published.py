"""Hook of the writer that counts the delay of new posts and comments by site, for `/metrics`, after the commit."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime

import redis
from sqlalchemy import func, select

from forums.state.publication_delays import PublicationDelays
from forums.storage import Comment, Database, Item, Post, scans

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
