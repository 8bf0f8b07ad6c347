"""Crawls that have requests for one site take turns at its limits, also where one of them asks far more often."""

from __future__ import annotations

from typing import Any

import pytest
import redis

from redis_components.keys import CrawlKeys
from redis_components.politeness.limits import LanePermits
from tests.lua.test_lanes import LANE, limit, store
from tests.support.owner import KEYS, Owner

OTHER_KEYS = CrawlKeys.for_spider("t")
ROUNDS = 30


def crawl(client: redis.Redis, name: str, keys: CrawlKeys) -> Owner:
    one = Owner(client, name, concurrency=30, keys=keys).open()
    store(one, ROUNDS)
    return one


def rounds(busy: Owner, other: Owner, times: int = ROUNDS) -> tuple[int, int]:
    """How many requests each gets, where `busy` asks again as soon as one has ended, and `other` once meanwhile."""
    found = {busy: 0, other: 0}
    for _ in range(times):
        for one in (other, busy, busy):
            if (lease := one.frontier.take()) is not None:
                found[one] += 1
                one.frontier.ack(lease.id)
            one.clock.advance(0.16)
    return found[busy], found[other]


LIMITS: dict[str, dict[str, Any]] = {
    "at a time": {"concurrency": 1},
    "per hour": {"quotas": ((3_600_000, 3_600_000),), "concurrency": 1},
}


@pytest.mark.parametrize("limited", LIMITS.values(), ids=LIMITS)
def test_a_crawl_that_asks_seldom_gets_its_turns(redis_client: redis.Redis, limited: dict[str, Any]) -> None:
    limit(redis_client, **limited)
    busy, other = crawl(redis_client, "busy", KEYS), crawl(redis_client, "other", OTHER_KEYS)
    of_busy, of_other = rounds(busy, other)
    assert of_other >= ROUNDS / 3, "none where who asks first gets it"
    assert of_busy >= ROUNDS / 3


def test_what_is_fetched_outside_of_a_crawl_gets_a_turn(redis_client: redis.Redis) -> None:
    limit(redis_client, concurrency=1)
    busy, permits, granted = crawl(redis_client, "busy", KEYS), LanePermits(redis_client, KEYS.limits), 0
    for _ in range(ROUNDS):
        if permits.ask([LANE]).is_granted:
            granted += 1
            permits.end(LANE)
        if (lease := busy.frontier.take()) is not None:
            busy.frontier.ack(lease.id)
        busy.clock.advance(0.16)
    assert ROUNDS / 5 <= granted < ROUNDS


def test_a_crawl_that_does_not_ask_any_more_holds_nobody_up(redis_client: redis.Redis) -> None:
    limit(redis_client, concurrency=1)
    busy = crawl(redis_client, "busy", KEYS)
    redis_client.hset(KEYS.lane_turns(LANE), "gone", "1 1")
    redis_client.hset(KEYS.lane_turns(LANE), "foreign", "text")
    busy.clock.advance(0.16)
    assert busy.frontier.take() is not None
    assert list(redis_client.hgetall(KEYS.lane_turns(LANE))) == [KEYS.ready().encode()]
