"""A quota of requests a minute over several crawls and sites, in addition to the sites' limits, by a clock that the test sets."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from redis_components.keys import CrawlKeys
from redis_components.politeness import limits
from redis_components.politeness.limits import MINUTE_MS, LaneLimits
from tests.lua.test_lanes import redis_ms, store, taken
from tests.support.faked_clock import RedisWithClock, needs_compiler
from tests.support.owner import KEYS, Owner
from tests.support.processes import wait_until

QUOTA, SITE = "quotas.ops", "example.org"
PER_MINUTE, SECONDS = 60, 240


def crawler(client: redis.Redis, name: str, quota: str = QUOTA) -> Owner:
    keys = CrawlKeys.for_spider(name)
    one = Owner(client, name, keys=keys, concurrency=30, ttl_s=86_400, quota=quota)
    one.frontier.open()
    one.clock.advance(0.1)
    return one


@pytest.fixture
def clocked(tmp_path: Path) -> Iterator[tuple[RedisWithClock, redis.Redis]]:
    with RedisWithClock(tmp_path) as server:
        yield server, server.client()


def send(one: Owner) -> int:
    """Take what may be sent now, and end it; returns the number."""
    leases = taken(one, 0.25)
    for lease in leases:
        one.frontier.ack(lease.id)
    one.clock.advance(0.05)
    return len(leases)


@needs_compiler
def test_no_minute_has_more_over_all_crawls_and_sites_and_each_crawl_gets_its_part(
    clocked: tuple[RedisWithClock, redis.Redis],
) -> None:
    server, client = clocked
    limits.change(client, KEYS.limits, QUOTA, LaneLimits(quotas=((PER_MINUTE, MINUTE_MS),)))
    limits.change(client, KEYS.limits, SITE, LaneLimits(rate=20, burst=50))
    plain, limited, free = crawler(client, "plain"), crawler(client, "limited"), crawler(client, "free", quota="")
    store(plain, 400, QUOTA)
    store(limited, 400, SITE)
    store(free, 100, "")
    assert len(taken(free, 0.5)) >= 30, "what has no quota does not wait: as much as the process has places for"
    sent: dict[str, list[int]] = {"plain": [], "limited": []}
    for second in range(SECONDS):
        server.clock.jump(second)
        for name, one in (("plain", plain), ("limited", limited))[:: 1 if second % 2 else -1]:
            sent[name] += [redis_ms(client)] * send(one)
    times = sorted([at for some in sent.values() for at in some])
    # a request is sent up to 200 ms after it was leased, and here up to a second later than that
    most = max(bisect_left(times, at + MINUTE_MS - 1200) - place for place, at in enumerate(times))
    assert most <= PER_MINUTE
    assert len(times) >= 0.8 * PER_MINUTE * SECONDS / 60
    assert min(map(len, sent.values())) >= 0.3 * len(times)


def test_what_was_not_sent_counts_neither_for_the_site_nor_in_the_quota(redis_client: redis.Redis) -> None:
    limits.change(redis_client, KEYS.limits, QUOTA, LaneLimits(quotas=((60, MINUTE_MS),)))
    limits.change(redis_client, KEYS.limits, SITE, LaneLimits(rate=1000, burst=100))
    one, other = crawler(redis_client, "one"), crawler(redis_client, "other")
    store(one, 20, SITE)
    store(other, 20, QUOTA)

    def counted() -> int:
        fields: dict[bytes, bytes] = redis_client.hgetall(KEYS.lane_state(QUOTA))  # type: ignore[assignment]
        return sum(int(value) for name, value in fields.items() if name.startswith(b"60000:"))

    held = taken(one, 0.3)
    assert (len(held), counted(), len(taken(other, 0.3))) == (1, 1, 0), "a second's share"
    for lease in held:
        one.return_unsent(lease.id)
    one.frontier.close(lambda: None)  # it leases nothing more
    one.advance(0.2)
    assert counted() == 0
    wait_until(lambda: len(taken(other, 0.05)) == 1, "the other crawl has the time, at its next look")


@pytest.mark.parametrize("limited", [{}, {"concurrency": 2}], ids=["no limits", "concurrency"])
def test_a_site_whose_limits_come_later_has_its_requests_in_its_lane_and_in_the_quota(
    redis_client: redis.Redis, limited: dict[str, Any]
) -> None:
    if limited:
        limits.change(redis_client, KEYS.limits, SITE, LaneLimits(**limited))
    limits.change(redis_client, KEYS.limits, QUOTA, LaneLimits(quotas=((60, MINUTE_MS),)))
    one = crawler(redis_client, "one")
    store(one, 5, SITE)
    assert len(taken(one, 0.3)) == 1, "one each second"
    state = {name for name in redis_client.hkeys(KEYS.lane_state(QUOTA)) if name.startswith(b"60000:")}  # type: ignore[union-attr]
    assert len(state) == 1
