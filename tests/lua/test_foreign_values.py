"""A foreign value in any field of a crawl's hashes: the exchange goes on, but for one count, which is named with what to do."""

from __future__ import annotations

import itertools

import pytest
import redis

from redis_components.frontier.messages import NO_FILTER, NewRequest, NextTask
from redis_components.keys import CrawlKeys
from redis_components.politeness import limits
from tests.support.owner import KEYS, Owner

LANE = "example.org"


class Crawl:
    """A process that does something of each kind."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        limits.change(client, KEYS.limits, LANE, limits.LaneLimits.of(rate=50, concurrency=5, per_hour=1000))
        self.owner = Owner(
            client, "one", next_keys=CrawlKeys.for_spider("next"), turn_by="site", most_fed=3, max_items=1000
        ).open()
        self._numbers = itertools.count()

    def work(self) -> None:
        number, frontier = next(self._numbers), self.owner.frontier
        self._client.rpush(KEYS.start_tasks(), b'{"site": "a", "url": "http://x/%d"}' % number)
        frontier.want_tasks(4)
        frontier.add_request(NewRequest(NO_FILTER, "0", b"in a lane", LANE))
        frontier.add_request(NewRequest(b"%020d" % number, "0", b"filtered"))
        frontier.add_task(NextTask(f"id{number % 5}", f"token{number}", b'{"site": "a", "n": %d}' % number, site="a"))
        frontier.add_item(b"item")
        frontier.slow_down(LANE, 10)
        frontier.wait(LANE, 0.001, rate=10)
        self.owner.advance(0.6)
        for take in (frontier.take, frontier.take_task):
            while (lease := take()) is not None:
                frontier.ack(lease.id)
        self.owner.advance(0.3)


@pytest.mark.parametrize("value", [b"nan", b"1e308", b"x", b"\xff", b"", b"[]"])
def test_no_exchange_fails_for_a_foreign_value(redis_client: redis.Redis, caplog: pytest.LogCaptureFixture, value: bytes) -> None:
    crawl = Crawl(redis_client)
    for _ in range(8):
        crawl.work()
    keys = sorted(key for key in redis_client.keys("*") if redis_client.type(key) == b"hash")
    assert len(keys) > 6
    stopped = []
    for key in keys:
        for field in sorted(redis_client.hkeys(key))[:12]:
            before = redis_client.hget(key, field)
            if before is None:  # an exchange has dropped it
                continue
            caplog.clear()
            redis_client.hset(key, field, value)
            crawl.work()
            if "does not take the exchange" in caplog.text:
                assert "foreign value" in caplog.text, (key, field)
                stopped.append((key, field))
            redis_client.hset(key, field, before)
            crawl.owner.advance(1)
    assert stopped == [(KEYS.counters().encode(), b"acked")], "of requests that are done nobody else knows the number"
