"""Lanes: limits over all processes, sites that ask to be left alone, requests that wait for their time."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
import redis

from redis_components.admin.inspector import snapshot, wipe
from redis_components.admin.lanes import look
from redis_components.errors import ConfigError
from redis_components.frontier.messages import NO_FILTER, Lease, NewRequest
from redis_components.politeness import limits
from redis_components.politeness.limits import LaneLimits
from tests.support.owner import KEYS, Owner

LANE = "example.org"


@pytest.fixture
def crawler(redis_client: redis.Redis) -> Callable[..., Owner]:
    def make(name: str, **config: Any) -> Owner:
        one = Owner(redis_client, name, **{"concurrency": 30, **config})
        one.frontier.open()
        one.clock.advance(0.1)
        return one

    return make


def limit(client: redis.Redis, **limited: Any) -> None:
    limits.change(client, KEYS.limits, LANE, LaneLimits(**limited))


def store(one: Owner, number: int, lane: str = LANE, *, first: int = 0, not_before: float = 0.0) -> None:
    for n in range(first, first + number):
        one.frontier.add_request(NewRequest(NO_FILTER, "0", b"%s %d" % (lane.encode(), n), lane, not_before))
    one.clock.advance(0.05)


def taken(one: Owner, seconds: float = 0.0) -> list[Lease]:
    """What the engine gets within so much time of the process's own clock."""
    found = []
    for _ in range(max(1, round(seconds / 0.01))):
        while (lease := one.frontier.take()) is not None:
            found.append(lease)
        one.clock.advance(0.01)
    return found


def at_its_time(one: Owner) -> Lease:
    """The next request that one gets; later it would be given back."""
    while (lease := one.frontier.take()) is None:
        assert one.clock.time < 60
        one.clock.advance(0.001)
    return lease


def redis_ms(client: redis.Redis) -> int:
    seconds, micros = client.time()
    return int(seconds) * 1000 + int(micros) // 1000


def test_requests_of_a_lane_are_leased_at_its_rate_by_all_processes_together(
    redis_client: redis.Redis, crawler: Callable[..., Owner]
) -> None:
    limit(redis_client, rate=10)
    one, other = crawler("one"), crawler("other")
    began = redis_ms(redis_client)
    store(one, 50)
    leased = len(taken(one, 1)) + len(taken(other, 1))
    most = 1 + (redis_ms(redis_client) - began + 200) // 100
    assert 1 <= leased <= most, "200 ms are handed out in advance"
    assert redis_client.zcard(KEYS.lane(LANE)) + len(one.frontier._timed) + len(other.frontier._timed) == 50 - leased


def test_a_time_that_a_dead_process_had_ahead_is_free_again(redis_client: redis.Redis, crawler: Callable[..., Owner]) -> None:
    limit(redis_client, rate=20)
    one, other = crawler("one"), crawler("other")
    store(one, 1)
    at_its_time(one)
    leases, state = KEYS.leases("one"), f"{KEYS.limits}:{LANE}"
    [(lease, value)] = redis_client.hgetall(leases).items()
    soon = redis_ms(redis_client) + 60_000
    redis_client.hset(leases, lease, re.sub(rb"@\d+\|", b"@%d|" % soon, value, count=1))
    redis_client.hset(state, mapping={"times": struct.pack(">d", soon), "until": soon})
    redis_client.zadd(KEYS.owners(), {"one": 0})
    other.advance(1.2)
    assert redis_client.zcard(KEYS.lane(LANE)) == 1
    assert redis_client.hget(state, "times") == b""


def test_a_lane_of_a_redis_that_came_back_older_waits_as_if_it_had_sent_all_that_it_may(
    redis_client: redis.Redis, crawler: Callable[..., Owner]
) -> None:
    limit(redis_client, rate=0.01)
    one, other = crawler("one"), crawler("other")
    store(one, 5)
    at_its_time(one)
    redis_client.delete(KEYS.lane_state(LANE))
    redis_client.hset(KEYS.numbers(), "one", "1")
    for _ in range(20):
        one.advance(0.1)
        other.advance(0.1)
    assert (one.fenced, redis_client.exists(KEYS.lane_state(LANE))) == (1, 0), "nothing was leased"
    assert redis_client.zscore(KEYS.lanes(), LANE) <= redis_ms(redis_client) + 5_000, "an operator may change the limit"
    redis_client.set(KEYS.older_limits(), redis_ms(redis_client) - 101_000)
    redis_client.zadd(KEYS.lanes(), {LANE: 0})
    assert at_its_time(other).lane == LANE


@pytest.mark.parametrize(("seconds_ago", "left"), [(60, 2), (3700, 3)])
def test_a_quota_counts_what_an_older_redis_may_have_forgotten(
    redis_client: redis.Redis, crawler: Callable[..., Owner], seconds_ago: int, left: int
) -> None:
    limit(redis_client, rate=1, burst=10, quotas=((3, 3_600_000),))
    redis_client.set(KEYS.older_limits(), redis_ms(redis_client) - 1000 * seconds_ago)
    one = crawler("one")
    store(one, 5)
    for _ in range(left):
        at_its_time(one)
    one.advance(0.1)
    assert (one.frontier.take(), redis_client.zcard(KEYS.lane(LANE))) == (None, 5 - left)


def test_leases_of_a_lane_carry_times_that_are_apart_as_the_rate_says(
    redis_client: redis.Redis, crawler: Callable[..., Owner]
) -> None:
    limit(redis_client, rate=20)
    one = crawler("one")
    told: list[list[float]] = []
    one.frontier.listeners.applied.append(
        lambda _, reply: told.append([turn.wait_s for turn in reply.paced.values() if turn.wait_s is not None])
    )
    store(one, 50)
    taken(one, 0.2)
    assert max(map(len, told)) >= 2, "some are handed out in advance"
    for waits in told:
        assert all(later - sooner >= 0.049 for sooner, later in pairwise(sorted(waits)))


@pytest.mark.parametrize(
    ("limited", "late_s"),
    [({"rate": 20.0}, 0.012), ({}, math.inf), ({"quotas": ((36_000, limits.HOUR_MS), (10**6, limits.DAY_MS))}, 54.0)],
    ids=["by a rate", "by complaints", "by a quota: less than a bucket"],
)
def test_a_request_may_be_later_where_nothing_is_promised_of_the_moment(
    redis_client: redis.Redis, crawler: Callable[..., Owner], limited: dict[str, Any], late_s: float
) -> None:
    limit(redis_client, **limited)
    now = redis_ms(redis_client)
    redis_client.hset(KEYS.lane_state(LANE), mapping={"slowed": 20, "slowed_at": now, "slowed_top": 20, "slowed_return": 20})
    one = crawler("one")
    told: list[float] = []
    one.frontier.listeners.applied.append(
        lambda _, reply: told.extend(turn.late_s for turn in reply.paced.values() if turn.wait_s is not None)
    )
    store(one, 5)
    taken(one, 0.2)
    assert set(told) == {late_s}


def test_a_burst_comes_at_once_and_the_rate_holds_after_it(redis_client: redis.Redis, crawler: Callable[..., Owner]) -> None:
    limit(redis_client, rate=0.01, burst=5)
    one = crawler("one")
    store(one, 20)
    assert len(taken(one, 0.5)) == 5


def test_no_more_requests_are_at_work_than_a_lane_allows(redis_client: redis.Redis, crawler: Callable[..., Owner]) -> None:
    limit(redis_client, concurrency=3)
    one, other = crawler("one"), crawler("other")
    store(one, 20)
    mine, others = taken(one, 0.3), taken(other, 0.3)
    assert (len(mine) + len(others), redis_client.zcard(KEYS.lane_busy(LANE))) == (3, 3)
    for lease in mine:
        one.frontier.ack(lease.id)
    one.clock.advance(0.05)
    assert len(taken(one, 0.5)) + len(taken(other, 0.5)) == len(mine)


def test_a_quota_holds_in_every_window_over_all_processes(redis_client: redis.Redis, crawler: Callable[..., Owner]) -> None:
    limit(redis_client, rate=1000, burst=100, quotas=((7, limits.HOUR_MS), (100, limits.DAY_MS)))
    one, other = crawler("one"), crawler("other")
    store(one, 40)
    assert len(taken(one, 0.5)) + len(taken(other, 0.5)) == 7


def test_a_quota_without_a_rate_is_spread_over_its_window(redis_client: redis.Redis, crawler: Callable[..., Owner]) -> None:
    limit(redis_client, quotas=((600, limits.HOUR_MS),))
    one, other = crawler("one"), crawler("other")
    store(one, 40)
    assert len(taken(one, 0.5)) + len(taken(other, 0.5)) == 10, "a minute's share at once"
    [view] = look(redis_client, KEYS.limits, [KEYS], redis_ms(redis_client) / 1000)
    assert view.next_s is not None
    assert 0 < view.next_s < 6.3


def test_the_leases_of_a_dead_process_go_back_to_their_lane_and_make_room(
    redis_client: redis.Redis, crawler: Callable[..., Owner]
) -> None:
    limit(redis_client, concurrency=3)
    one, other = crawler("one"), crawler("other")
    store(one, 10)
    held = taken(one, 0.3)
    redis_client.zadd(KEYS.owners(), {"one": 0})
    other.clock.advance(0.5)
    again = taken(other, 0.5)
    assert (len(held), len(again), redis_client.zcard(KEYS.lane_busy(LANE))) == (3, 3, 3)
    assert {lease.data for lease in again} == {lease.data for lease in held}
    assert {lease.attempts for lease in again} == {1}


def test_a_request_that_was_stored_before_its_site_had_limits_waits_in_the_lane(
    redis_client: redis.Redis, crawler: Callable[..., Owner]
) -> None:
    one = crawler("one")
    store(one, 5, "")
    limit(redis_client, concurrency=1)
    one.clock.advance(0.2)
    for lease in taken(one):
        assert not lease.lane
        one.frontier.shelve(lease.id, LANE)
    one.clock.advance(0.05)
    assert len(taken(one, 0.3)) == 1
    assert (redis_client.zcard(KEYS.lane(LANE)), redis_client.hget(KEYS.counters(), "leased")) == (4, b"1")


def test_a_site_that_asks_to_be_left_alone_is_by_every_process(redis_client: redis.Redis, crawler: Callable[..., Owner]) -> None:
    limit(redis_client, rate=1000)
    one, other = crawler("one"), crawler("other")
    store(one, 300)
    assert taken(one, 0.1)
    other.clock.advance(0.1)
    one.frontier.wait(LANE, 3600)
    one.clock.advance(0.01)
    other.clock.advance(0.2)  # its next exchange
    assert taken(one, 0.5) == taken(other, 0.5) == []
    assert not one.frontier.idle
    till = int(redis_client.hget(KEYS.lane_state(LANE), "until") or 0)
    assert 3_500_000 < till - redis_ms(redis_client) <= 3_600_000


def test_a_lane_becomes_known_to_all_by_its_first_wait(redis_client: redis.Redis, crawler: Callable[..., Owner]) -> None:
    one, other = crawler("one"), crawler("other")
    one.frontier.wait(LANE, 5)
    one.clock.advance(0.01)
    other.clock.advance(1.1)
    assert one.frontier.limits.lanes == other.frontier.limits.lanes == {LANE}


def test_a_wait_without_a_time_is_60_s_and_doubled_with_jitter(redis_client: redis.Redis, crawler: Callable[..., Owner]) -> None:
    one, waits = crawler("one"), []
    for _ in range(3):
        one.frontier.wait(LANE)
        one.frontier.wait(LANE)  # of another page at the same moment: it counts once
        one.clock.advance(0.05)
        now = redis_ms(redis_client)
        waits.append(int(redis_client.hget(KEYS.lane_state(LANE), "until") or 0) - now)
        redis_client.hset(KEYS.lane_state(LANE), "until", now - 1)
    for step, wait in enumerate(waits):
        assert 0.7 * 60_000 * 2**step <= wait <= 1.3 * 60_000 * 2**step
    redis_client.hset(KEYS.lane_state(LANE), "asked", redis_ms(redis_client) - 3 * 3_600_000)
    one.frontier.wait(LANE)
    one.clock.advance(0.05)
    assert int(redis_client.hget(KEYS.lane_state(LANE), "step") or 0) == 1, "half an hour of peace"


def test_a_request_with_a_time_is_leased_then_and_not_before(redis_client: redis.Redis, crawler: Callable[..., Owner]) -> None:
    limit(redis_client, rate=100)
    one = crawler("one")
    store(one, 1, "", not_before=redis_ms(redis_client) / 1000 + 3600)
    store(one, 1, LANE, not_before=redis_ms(redis_client) / 1000 + 7200)
    assert taken(one, 0.5) == []
    assert not one.frontier.idle
    for member, _ in redis_client.zrange(KEYS.later_requests(), 0, 9, withscores=True):
        redis_client.zadd(KEYS.later_requests(), {member: redis_ms(redis_client)})
    redis_client.zadd(KEYS.lanes(), {"\1later": 0})
    assert {lease.data for lease in taken(one, 0.5)} == {b" 0", LANE.encode() + b" 0"}
    assert redis_client.exists(KEYS.later_requests(), KEYS.lanes()) == 0


def test_lanes_are_served_in_turn_and_by_priority_inside(redis_client: redis.Redis, crawler: Callable[..., Owner]) -> None:
    for lane in ("a", "b", "c"):
        limits.change(redis_client, KEYS.limits, lane, LaneLimits(concurrency=2))
    one = crawler("one")
    for lane in ("a", "b", "c"):
        for n in range(5):
            one.frontier.add_request(NewRequest(NO_FILTER, str(-n), b"%s %d" % (lane.encode(), n), lane))
    one.clock.advance(0.05)
    found = sorted(lease.data for lease in taken(one, 0.5))
    assert found == [b"a 3", b"a 4", b"b 3", b"b 4", b"c 3", b"c 4"]


def test_lanes_take_turns_by_their_weight(redis_client: redis.Redis, crawler: Callable[..., Owner]) -> None:
    for lane, weight in (("a.org", 3), ("b.org", 1), ("c.org", 1)):
        limits.change(redis_client, KEYS.limits, lane, LaneLimits(weight=weight))
    one = crawler("one", concurrency=10)
    for lane in ("a.org", "b.org", "c.org"):
        store(one, 60, lane)
    found: list[bytes] = []
    while len(found) < 100:
        leases = taken(one)
        assert leases, "while there is work, some is leased"
        found += [lease.data for lease in leases]
        for lease in leases:
            one.frontier.ack(lease.id)
        one.clock.advance(0.05)
    of = {lane: sum(data.startswith(lane) for data in found[:90]) for lane in (b"a.org", b"b.org", b"c.org")}
    assert 2.4 <= of[b"a.org"] / of[b"b.org"] <= 3.6, of
    assert abs(of[b"b.org"] - of[b"c.org"]) <= 4, of


def test_when_limits_are_removed_the_lane_is_emptied(redis_client: redis.Redis, crawler: Callable[..., Owner]) -> None:
    limit(redis_client, rate=0.001)
    one = crawler("one")
    store(one, 10)
    limits.change(redis_client, KEYS.limits, LANE, None)
    redis_client.zadd(KEYS.lanes(), {LANE: 0})  # it is looked at again within 5 s
    found = 0
    for _ in range(10):
        for lease in taken(one, 0.3):
            one.frontier.ack(lease.id)
            found += 1
    assert (found, redis_client.exists(KEYS.lane(LANE), KEYS.lanes())) == (10, 0)


def test_a_lost_answer_brings_the_same_leases_with_their_lanes(redis_client: redis.Redis, crawler: Callable[..., Owner]) -> None:
    limit(redis_client, concurrency=3)
    one = crawler("one")
    store(one, 5)
    one.clock.advance(0.05)
    leased = taken(one, 0.3)
    for lease in leased:
        one.frontier.ack(lease.id)
    one.exchanger.lose_replies = 1
    again = taken(one, 0.5)
    assert all(lease.lane == LANE for lease in (*leased, *again))
    assert {lease.data for lease in (*leased, *again)} == {b"%s %d" % (LANE.encode(), n) for n in range(5)}


@pytest.mark.parametrize("lane", ["", "a b", "a@b", "a|b", "version", "\x01later", "x" * 300])
def test_a_name_that_no_lane_can_have_is_refused(redis_client: redis.Redis, lane: str) -> None:
    with pytest.raises(ConfigError, match="not a site"):
        limits.change(redis_client, KEYS.limits, lane, LaneLimits())


def test_requests_of_lanes_count_as_ready_and_are_removed_with_the_queue(
    redis_client: redis.Redis, crawler: Callable[..., Owner]
) -> None:
    limit(redis_client, rate=0.001)
    one = crawler("one")
    store(one, 10)
    store(one, 3, "", not_before=redis_ms(redis_client) / 1000 + 3600)
    one.frontier.close(lambda: None)
    one.clock.advance(0.1)
    assert snapshot(redis_client, "s", KEYS).ready == 13
    assert wipe(redis_client, KEYS, but_not_for="one") is None
    assert redis_client.exists(KEYS.lanes(), KEYS.lane(LANE), KEYS.later_requests()) == 0


def test_start_tasks_of_a_site_whose_lane_is_full_wait(redis_client: redis.Redis) -> None:
    limits.change(redis_client, KEYS.limits, "a", LaneLimits(rate=0.001))
    one = Owner(redis_client, "one", concurrency=2, turn_by="site")
    one.frontier.open()
    one.clock.advance(0.1)
    store(one, 6, "a")
    taken(one, 0.1)
    redis_client.rpush(KEYS.start_tasks(), *(b'{"site":"%s"}' % site for site in (b"a", b"b")))
    one.frontier.want_tasks(5)
    one.clock.advance(0.3)
    found = []
    while (task := one.frontier.take_task()) is not None:
        found.append(task.data)
    assert found == [b'{"site":"b"}']


def test_refusals_without_peace_are_counted(redis_client: redis.Redis, crawler: Callable[..., Owner]) -> None:
    one, state = crawler("one"), KEYS.lane_state(LANE)
    for expected in (1, 2, 3):
        for _ in range(3):
            one.frontier.wait(LANE, 5, rate=1)
        one.clock.advance(0.05)
        assert redis_client.hget(state, "refusals") == b"%d" % expected
        redis_client.hset(state, "until", redis_ms(redis_client) - 1)
    redis_client.hset(state, mapping={"until": 1, "asked": 1})
    one.frontier.wait(LANE, 5)
    one.clock.advance(0.05)
    assert redis_client.hget(state, "refusals") == b"1"
