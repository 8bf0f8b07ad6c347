"""Storing one request outside of an exchange, for a Scheduler that is used without an engine."""

from __future__ import annotations

import msgspec
import redis

from redis_components.dupefilters.kinds import Filter, misfit
from redis_components.errors import LayoutError
from redis_components.keys import CrawlKeys
from redis_components.server.scripts import script

from .messages import NewRequest, QueueOrder


def store(client: redis.Redis, keys: CrawlKeys, order: QueueOrder, filter: Filter, request: NewRequest) -> bool:
    """Store `request` unless it was seen before, in one step; True where it was stored.

    Raises LayoutError, and ConfigError where another dupefilter is at that key.
    """
    outcome, detail = script("store_one")(
        client,
        {"ready": keys.ready(), "seen": keys.fingerprints(), "counters": keys.counters()},
        {
            "order": order.value,
            "filter": msgspec.msgpack.encode(filter.options()),
            "fingerprint": request.fingerprint,
            "score": request.score,
            "payload": request.payload,
        },
    )
    if outcome == b"layout":
        raise LayoutError(f"{keys.counters()}: another layout version: use the Trawl that crawls there")
    if outcome == b"filter":
        raise misfit(keys.fingerprints(), detail.decode(), filter.form)
    return bool(outcome == b"stored")
