"""What is shown of lanes, over several crawls."""

from __future__ import annotations

import redis

from redis_components.admin.lanes import look
from redis_components.keys import CrawlKeys, limits_key
from redis_components.politeness.limits import LaneLimits, change

CRAWLS = [CrawlKeys.for_spider(name) for name in ("books", "news", "idle")]


def test_what_waits_is_counted_over_the_crawls_that_hold_the_lane(redis_client: redis.Redis) -> None:
    assert look(redis_client, limits_key(), CRAWLS, 1000.0) == [], "nothing has limits"
    for lane in ("a.test", "b.test", "c.test"):
        change(redis_client, limits_key(), lane, LaneLimits(rate=1.0))
    for crawl, lane, number, due_ms in ((0, "a.test", 2, 1_004_000), (1, "a.test", 3, 1_002_500), (1, "b.test", 1, 0)):
        redis_client.zadd(CRAWLS[crawl].lanes(), {lane: due_ms})
        redis_client.zadd(CRAWLS[crawl].lane(lane), {f"request {n}": n for n in range(number)})
    views = look(redis_client, limits_key(), CRAWLS, 1000.0)
    assert [(one.lane, one.waiting, one.next_s) for one in views] == [("a.test", 5, 2.5), ("b.test", 1, 0.0), ("c.test", 0, None)]
    assert [one.waiting for one in look(redis_client, limits_key(), [], 1000.0)] == [0, 0, 0]
    assert [one.lane for one in look(redis_client, limits_key(), CRAWLS, 1000.0, first=["c.test"], most=1)] == ["c.test"]
