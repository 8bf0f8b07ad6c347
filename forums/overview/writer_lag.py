"""Age of the oldest item that waits for the forum writer."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import msgspec
import redis

from redis_components.keys import CrawlKeys


class _Stamp(msgspec.Struct):
    """Time of the fetch of an item: a post, comment or forum; or a scan or check."""

    fetched_at: datetime | None = None
    finished_at: datetime | None = None


_decoder = msgspec.json.Decoder(_Stamp)


def writer_lag(client: redis.Redis, streams: Iterable[CrawlKeys], now: float) -> float:
    """Return the seconds from the fetch of the oldest waiting item until `now` (epoch s, Redis); 0.0 if none waits.

    Unreadable items have no age: the writer refuses them. Raises `redis.RedisError`.
    """
    with client.pipeline(transaction=False) as pipe:
        for keys in streams:
            pipe.lindex(keys.item_stream(), 0)
        heads: list[Any] = pipe.execute()
    return max((now - at for at in map(_fetched_at, filter(None, heads)) if 0 < at < now), default=0.0)


def _fetched_at(payload: bytes | str) -> float:
    try:
        stamp = _decoder.decode(payload)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return 0.0
    moment = stamp.fetched_at or stamp.finished_at
    return moment.timestamp() if moment and moment.tzinfo else 0.0
