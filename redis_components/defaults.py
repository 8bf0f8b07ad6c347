"""Default values of settings, by scrapy-redis's names where it has them; those of the exchange are `FrontierConfig`'s."""

from __future__ import annotations

from typing import Any

# Connection. Everything in REDIS_PARAMS is passed to the client as it is.
REDIS_ENCODING = "utf-8"
REDIS_PARAMS: dict[str, Any] = {
    "socket_timeout": 30,
    "socket_connect_timeout": 30,
    "encoding": REDIS_ENCODING,
}
REDIS_CONCURRENT_REQUESTS = 16

# Keys of one spider. REDIS_NAMESPACE, "" by default, comes before each.
SCHEDULER_QUEUE_KEY = "%(spider)s:requests"
SCHEDULER_DUPEFILTER_KEY = "%(spider)s:dupefilter"
START_URLS_KEY = "%(name)s:start_urls"
PIPELINE_KEY = "%(spider)s:items"
STATS_KEY = "%(spider)s:stats"
DUPEFILTER_KEY = "dupefilter:%(timestamp)s"

# Dupefilter; its other defaults are those of `filters`.
DUPEFILTER_MAX_ENTRIES = 1_000_000

# Scheduler.
SCHEDULER_QUEUE_CLASS = "redis_components.queue.PriorityQueue"
SCHEDULER_DUPEFILTER_CLASS = "redis_components.dupefilter.RFPDupeFilter"
SCHEDULER_PERSIST = False
START_URLS_AS_SET = False
START_URLS_AS_ZSET = False
REDIS_KEY_CHECK_INTERVAL: int | None = None
MAX_IDLE_TIME = 0
SCHEDULER_LOCAL_SEEN = 100_000

# Services and their sizes where TRAWL_FLEET names none.
FLEET = "forum_list=1,forum_detail=1"


def __getattr__(name: str) -> Any:
    """Return `REDIS_CLS`; redis-py takes 0.2 s to import, and commands without a server read defaults, too."""
    if name != "REDIS_CLS":
        raise AttributeError(name)
    import redis

    return redis.Redis
