"""A model of the limiter: whatever processes store, take, finish, lose and say, a site never gets more than was promised to it.

All bounds are upper ones by Redis's clock, so a slow machine makes no difference.
"""

from __future__ import annotations

from typing import Any

import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from redis_components.frontier.messages import NO_FILTER, Lease, NewRequest
from redis_components.politeness import limits
from redis_components.politeness.limits import HOUR_MS, LaneLimits, LanePermits
from redis_components.politeness.robots_cache import FileKind, RobotsCache, RobotsFile
from tests.lua.test_lanes import LANE, redis_ms
from tests.support.examples import examples
from tests.support.owner import KEYS, Owner

AHEAD_MS = 200
"""So far in advance leases are handed out (`lib/sending.lua`)."""
APART = 1.045
"""Requests of a rate are farther apart by this (the same file)."""
QUIET = ((0, 720), (660, 60))
"""At any time of the day."""
LIMITS = st.builds(
    LaneLimits,
    rate=st.none() | st.sampled_from([2.0, 20.0, 200.0]),
    burst=st.sampled_from([1, 1, 5]),
    concurrency=st.none() | st.integers(1, 4),
    quotas=st.sampled_from([(), ((7, HOUR_MS),), ((12, HOUR_MS), (5, 2 * HOUR_MS))]),
)
STEPS = ["store", "take", "take", "take", "ack", "release", "unsent", "die", "slow", "robots", "visit", "visit", "wait", "quiet"]
STEP = st.tuples(st.sampled_from(STEPS), st.integers(0, 1))


class Site:
    """Two crawlers on one site, and what the site was promised."""

    def __init__(self, client: redis.Redis, limited: LaneLimits) -> None:
        client.flushdb()
        self.client, self.limited = client, limited
        limits.change(client, KEYS.limits, LANE, limited)
        self.crawlers = [Owner(client, str(n), concurrency=30).open() for n in range(2)]
        self.work: list[dict[str, Lease]] = [{}, {}]
        self.began, self.stored, self.started = redis_ms(client), 0, 0
        self.is_left_alone = False

    def do(self, what: str, n: int) -> None:
        one, work = self.crawlers[n], self.work[n]
        match what:
            case "store":
                for number in range(self.stored, self.stored + 10):
                    one.frontier.add_request(NewRequest(NO_FILTER, "0", b"%d" % number, LANE))
                self.stored += 10
            case "take":
                self.take(n)
            case "ack" | "release" if work:
                lease = work.pop(min(work))
                (one.frontier.ack if what == "ack" else one.frontier.release)(lease.id)
            case "unsent" if work:
                one.return_unsent(work.pop(max(work)).id)
                self.started -= 1
            case "die":
                self.client.zadd(KEYS.owners(), {one.frontier.owner: 0})
                self.crawlers[1 - n].advance(1.2)
                work.clear()
            case "slow":
                one.frontier.slow_down(LANE, 50)
            case "robots":
                RobotsCache(self.client, KEYS, "x").store("http://a", RobotsFile(FileKind.RULES, rate=10.0), LANE)
            case "visit":
                self.visit()
            case "wait":
                one.frontier.wait(LANE, 3600)
            case "quiet":
                limits.change(self.client, KEYS.limits, LANE, replace(self.limited, quiet=QUIET))
        one.advance(0.05)
        if what in ("wait", "quiet"):
            self.crawlers[1 - n].advance(1.2)  # it has heard of it
            self.is_left_alone = True

    def visit(self) -> None:
        """A page that is fetched outside of the crawl."""
        permits = LanePermits(self.client, KEYS.limits)
        if permits.ask([LANE]).is_granted:
            assert not self.is_left_alone
            self.started += 1
            permits.end(LANE)

    def take(self, n: int) -> None:
        one = self.crawlers[n]
        for _ in range(20):
            while (lease := one.frontier.take()) is not None:
                assert not self.is_left_alone, "the site asked to be left alone"
                self.work[n][lease.id] = lease
                self.started += 1
            one.advance(0.01)

    def check(self) -> None:
        limited = self.limited
        if limited.concurrency:
            assert self.client.zcard(KEYS.lane_busy(LANE)) <= limited.concurrency
        for most, _ in limited.quotas:
            assert self.started <= most
        if limited.rate:
            elapsed_ms = redis_ms(self.client) - self.began + AHEAD_MS
            assert self.started <= limited.burst + limited.rate / APART * elapsed_ms / 1000 + 1
        waiting = self.client.zcard(KEYS.lane(LANE)) + self.client.zcard(KEYS.ready())
        leased = sum(len(self.client.hkeys(key.decode())) for key in self.client.keys(f"{KEYS.requests}:leases:*"))
        counted: Any = self.client.hget(KEYS.counters(), "acked") or 0
        assert waiting + leased + int(counted) == self.stored, "none is lost, none is there twice"


@settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True)
@given(limited=LIMITS, steps=st.lists(STEP, min_size=5, max_size=25))
def test_a_site_never_gets_more_than_it_allows(
    redis_client: redis.Redis, limited: LaneLimits, steps: list[tuple[str, int]]
) -> None:
    site = Site(redis_client, limited)
    site.do("store", 0)
    for what, n in steps:
        site.do(what, n)
        site.check()
    for one in site.crawlers:
        one.frontier.stop()
