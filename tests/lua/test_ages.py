"""Since when the oldest request waits, by the order numbers that requests are stored with."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import redis
from scrapy import Request, Spider

from redis_components.admin.inspector import snapshot
from redis_components.admin.lanes import look
from redis_components.filters import PlainSet
from redis_components.frontier.messages import NO_FILTER, NewRequest, QueueOrder
from redis_components.keys import CrawlKeys
from redis_components.politeness.limits import LaneLimits, change
from redis_components.queue import FifoQueue, LifoQueue
from redis_components.scrapy_glue.standalone_scheduler import store as store_one
from tests.support.faked_clock import RedisWithClock, needs_compiler
from tests.support.owner import KEYS

LANE, OTHER = "example.org", CrawlKeys.for_spider("other")


def now_ms(client: redis.Redis) -> int:
    seconds, micros = client.time()
    return int(seconds) * 1000 + int(micros) // 1000


def while_it(client: redis.Redis, acts: Callable[[], object]) -> tuple[int, int]:
    """Times of Redis before and after, in ms."""
    before = now_ms(client)
    acts()
    return before, now_ms(client)


def store(client: redis.Redis, payload: str, order: QueueOrder = QueueOrder.FIFO, priority: int = 0) -> None:
    store_one(client, KEYS, order, PlainSet(), NewRequest(NO_FILTER, str(-priority), payload.encode()))


def oldest_ms(client: redis.Redis) -> float:
    return snapshot(client, "s", KEYS).oldest_ready_at * 1000


@pytest.mark.parametrize("order", [QueueOrder.FIFO, QueueOrder.LIFO, QueueOrder.PRIORITY])
def test_the_oldest_request_is_found_in_each_order_that_says_it(redis_client: redis.Redis, order: QueueOrder) -> None:
    assert oldest_ms(redis_client) == 0, "none waits"
    before, after = while_it(redis_client, lambda: store(redis_client, "old", order))
    for payload, priority in (("middle", 5), ("new", 0), ("urgent", 9)):
        store(redis_client, payload, order, priority)
    assert before <= oldest_ms(redis_client) <= after


def test_a_random_order_does_not_say_it_and_loses_nothing(redis_client: redis.Redis) -> None:
    for payload in map(str, range(50)):
        store(redis_client, payload, QueueOrder.RANDOM)
    assert (redis_client.zcard(KEYS.ready()), oldest_ms(redis_client)) == (50, 0)


def test_the_oldest_of_a_lane_counts_for_its_crawl(redis_client: redis.Redis) -> None:
    change(redis_client, KEYS.limits, LANE, LaneLimits(rate=1.0))
    now = now_ms(redis_client)
    for age_s, score in ((90, 0), (300, 5), (60, 5)):
        member = struct.pack(">QB", (now - age_s * 1000) * 1000, 0) + b"request"
        redis_client.zadd(KEYS.lane(LANE), {member: score})
    redis_client.zadd(KEYS.lanes(), {LANE: now})
    (view,) = look(redis_client, KEYS.limits, [KEYS], now / 1000)
    assert view.waiting == 3
    assert oldest_ms(redis_client) == now - 300_000


def test_numbers_grow_also_where_the_clock_was_ahead_before_and_an_older_trawl_s_tell_no_time(redis_client: redis.Redis) -> None:
    ahead = (now_ms(redis_client) + 3_600_000) * 1000
    redis_client.hset(KEYS.counters(), mapping={"layout": "1", "order": ahead})
    redis_client.zadd(KEYS.ready(), {struct.pack(">QB", 7, 0) + b"of an older Trawl": 0})
    store(redis_client, "one")
    store(redis_client, "two")
    members: list[bytes] = redis_client.zrange(KEYS.ready(), 0, -1)
    assert [(struct.unpack(">Q", one[:8])[0], one[9:]) for one in members] == [
        (7, b"of an older Trawl"),
        (ahead + 1, b"one"),
        (ahead + 2, b"two"),
    ]
    assert oldest_ms(redis_client) == 0


@needs_compiler
def test_a_clock_of_redis_that_was_far_ahead_spoils_no_order(tmp_path: Path) -> None:
    year_s = 365 * 86_400
    with RedisWithClock(tmp_path) as server:
        client = server.client()
        for years, payload in ((0, "first"), (40, "second"), (150, "third"), (0, "fourth")):
            server.set_to(time.time() + years * year_s)
            store(client, payload, QueueOrder.LIFO)
            store_one(client, OTHER, QueueOrder.FIFO, PlainSet(), NewRequest(NO_FILTER, "0", payload.encode()))
        up, down = (client.zrange(keys.ready(), 0, -1) for keys in (OTHER, KEYS))
    expected = [b"first", b"second", b"third", b"fourth"]
    assert ([one[9:] for one in up], [one[9:] for one in down]) == (expected, expected[::-1])


@pytest.mark.parametrize("cls", [FifoQueue, LifoQueue])
def test_what_is_pushed_without_a_crawler_has_its_age_too(redis_client: redis.Redis, cls: type[FifoQueue]) -> None:
    queue = cls(redis_client, Spider("s"), KEYS.requests)
    redis_client.hset(KEYS.counters(), "order", (now_ms(redis_client) - 3_600_000) * 1000)
    before, after = while_it(redis_client, lambda: queue.push(Request("http://127.0.0.1/1")))
    assert before <= oldest_ms(redis_client) <= after
