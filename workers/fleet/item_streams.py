"""Item streams with consumer groups while no crawler looks after them: what every group has acknowledged leaves Redis."""

from __future__ import annotations

import redis

from redis_components.crawl_admin.item_group import tend
from redis_components.fleet.crawl_records import CrawlRecords


def tend_streams(client: redis.Redis) -> None:
    """Tend the stream of each crawl that was recorded with groups in this Redis. Raises `redis.RedisError`."""
    crawls = {one.keys.items: one.keys for one in CrawlRecords(client).all().values() if one.keys.item_groups and not one.redis}
    for keys in crawls.values():
        tend(client, keys)
