"""Sums of the stats that single processes of a crawl have set: `stats.set_value` sets each process's own value."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import redis

from redis_components.keys import CrawlKeys
from redis_components.server.replies import as_text
from redis_components.server.stored_values import answers_of, number

MOST_PROCESSES = 500
_BOUND = 1e300


def sums(client: redis.Redis, keys: CrawlKeys, now: float, wanted: Callable[[str], bool]) -> dict[str, float]:
    """Return the sum of each wanted stat over the processes that live at `now` (epoch s of Redis); of those that are numbers.

    Two round trips. Raises `redis.RedisError`.
    """
    owners: Any = client.zrangebyscore(keys.owners(), now * 1000, "+inf", start=0, num=MOST_PROCESSES)
    with client.pipeline(transaction=False) as pipe:
        for owner in owners:
            pipe.hgetall(keys.own_stats(as_text(owner)))
        answers = answers_of(pipe) if owners else []
    found: defaultdict[str, float] = defaultdict(float)
    for fields in answers:
        for field, raw in (fields or {}).items():
            name = as_text(field)
            if not wanted(name):
                continue
            with suppress(ValueError):
                value = number(raw, -_BOUND, _BOUND)
                found[name] += value
    return dict(found)
