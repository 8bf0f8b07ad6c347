"""A request that was leased and not sent is counted in no limit, however its lease ends; one that was sent is counted once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import redis

from fleet_operations.overview import Overview, problems
from forums.overview import ForumSites
from redis_components.admin.inspector import expire_owner
from redis_components.admin.lanes import LaneCondition, in_one_line, look
from redis_components.frontier import holds
from redis_components.frontier.holds import Hold, HoldKind
from redis_components.frontier.messages import Lease
from redis_components.politeness import limits
from redis_components.politeness.limits import DAY_MS, HOUR_MS, LanePermits
from tests.lua.test_lanes import LANE, limit, redis_ms, store, taken
from tests.support.owner import KEYS, Owner

FAST: dict[str, Any] = {"rate": 1000.0, "burst": 100}
LIMITS: dict[str, tuple[dict[str, Any], int]] = {
    "rate": ({"rate": 0.01}, 1),
    "burst": ({"rate": 0.01, "burst": 5}, 5),
    "hour": ({"quotas": ((600, HOUR_MS),)}, 10),
    "day": ({"quotas": ((14_400, DAY_MS),)}, 10),
    "few a day": ({"quotas": ((20, DAY_MS),)}, 1),
    "hour and day": ({"quotas": ((600, HOUR_MS), (10_080, DAY_MS))}, 7),
    "rate and hour": ({**FAST, "quotas": ((7, HOUR_MS),)}, 7),
    "rate and day": ({**FAST, "quotas": ((7, DAY_MS),)}, 7),
    "concurrency": ({"concurrency": 3}, 3),
    "concurrency and hour": ({"concurrency": 3, "quotas": ((600, HOUR_MS),)}, 3),
    "complaints": ({}, 1),
}
"""Limits, and how many of 20 requests may be sent at once."""
EACH_LIMIT = pytest.mark.parametrize(("limited", "at_once"), LIMITS.values(), ids=LIMITS)


@pytest.fixture
def two(redis_client: redis.Redis) -> Callable[[dict[str, Any]], tuple[Owner, Owner]]:
    def make(limited: dict[str, Any]) -> tuple[Owner, Owner]:
        limit(redis_client, **limited)
        if not limited:
            slowed = {"slowed": 0.01, "slowed_at": redis_ms(redis_client), "slowed_top": 0.01, "slowed_return": 20}
            redis_client.hset(KEYS.lane_state(LANE), mapping=slowed)
        one, other = (Owner(redis_client, name, concurrency=30).open() for name in ("one", "other"))
        store(one, 20)
        return one, other

    return make


def counted(client: redis.Redis) -> set[int]:
    """What each window has counted."""
    found: dict[bytes, int] = {}
    for field, value in client.hgetall(KEYS.lane_state(LANE)).items():
        window, mark, _ = field.partition(b":")
        if mark:
            found[window] = found.get(window, 0) + int(value)
    return set(found.values())


def return_them(one: Owner, held: list[Lease]) -> None:
    for lease in held:
        one.return_unsent(lease.id)


def refuse_them(one: Owner, held: list[Lease]) -> None:
    """Their site has no place in this process."""
    for lease in held:
        one.frontier.refuse(lease)


def bury_them(one: Owner, held: list[Lease]) -> None:
    """They could not be read."""
    for lease in held:
        one.frontier.free_time(lease.id)
        one.frontier.bury(lease.id, "no request")


def uncount_them_twice(one: Owner, held: list[Lease]) -> None:
    for lease in held:
        one.frontier.free_time(lease.id)
        one.return_unsent(lease.id)


def lose_the_answer(one: Owner, held: list[Lease]) -> None:
    one.exchanger.lose_replies = 1
    return_them(one, held)


WAYS = [return_them, refuse_them, bury_them, uncount_them_twice, lose_the_answer]


@EACH_LIMIT
@pytest.mark.parametrize("end", WAYS)
def test_what_was_not_sent_leaves_room_for_as_many(
    redis_client: redis.Redis,
    two: Callable[[dict[str, Any]], tuple[Owner, Owner]],
    limited: dict[str, Any],
    at_once: int,
    end: Callable[[Owner, list[Lease]], None],
) -> None:
    one, other = two(limited)
    held = taken(one, 0.3)
    assert (len(held), len(taken(other, 0.3))) == (at_once, 0)
    end(one, held)
    one.frontier.close(lambda: None)  # it leases nothing more
    one.advance(0.2)
    assert counted(redis_client) <= {0}
    assert redis_client.zcard(KEYS.lane_busy(LANE)) == 0
    again = taken(other, 0.3)
    assert (len(again), len(taken(one, 0.3))) == (at_once, 0), "as many as before, none more"
    assert counted(redis_client) <= {at_once}


@EACH_LIMIT
def test_what_waits_when_a_crawler_leaves_is_not_counted(
    redis_client: redis.Redis, two: Callable[[dict[str, Any]], tuple[Owner, Owner]], limited: dict[str, Any], at_once: int
) -> None:
    """As a roll does it."""
    one, other = two(limited)
    one.advance(0.1)
    one.close()
    assert counted(redis_client) <= {0}
    assert len(taken(other, 0.3)) == at_once


@EACH_LIMIT
def test_what_a_crawler_was_to_send_after_its_death_is_not_counted(
    redis_client: redis.Redis, two: Callable[[dict[str, Any]], tuple[Owner, Owner]], limited: dict[str, Any], at_once: int
) -> None:
    """Its supervisor saw it end a minute before: that time is stored for its owner."""
    one, other = two(limited)
    assert len(taken(one, 0.3)) == at_once
    redis_client.zadd(KEYS.owners(), {"one": redis_ms(redis_client) - 60_000})
    other.advance(1.2)
    assert len(taken(other, 0.3)) == at_once
    assert counted(redis_client) <= {at_once}


def test_what_a_crawler_may_have_sent_before_its_death_stays_counted(
    redis_client: redis.Redis, two: Callable[[dict[str, Any]], tuple[Owner, Owner]]
) -> None:
    one, other = two({**FAST, "quotas": ((7, HOUR_MS),)})
    assert len(taken(one, 0.3)) == 7
    assert expire_owner(redis_client, KEYS, "one")
    other.advance(1.2)
    assert (len(taken(other, 0.3)), counted(redis_client)) == (0, {7})


def test_what_is_sent_is_counted_once(redis_client: redis.Redis, two: Callable[[dict[str, Any]], tuple[Owner, Owner]]) -> None:
    one, other = two({**FAST, "quotas": ((12, HOUR_MS), (15, DAY_MS))})
    held = taken(one, 0.3)
    assert len(held) == 12
    for lease in held[:4]:
        one.frontier.ack(lease.id)
    for lease in held[4:8]:  # they were sent, and are tried again later
        one.frontier.release(lease.id)
    return_them(one, held[8:])
    one.frontier.close(lambda: None)
    one.advance(0.2)
    assert counted(redis_client) == {8}
    assert len(taken(other, 0.3)) == 4


def test_what_was_leased_before_a_quota_is_not_taken_off_it(
    redis_client: redis.Redis, two: Callable[[dict[str, Any]], tuple[Owner, Owner]]
) -> None:
    one, other = two(FAST)
    before = taken(one, 0.3)
    limit(redis_client, **FAST, quotas=((12, HOUR_MS),))
    store(other, 5, first=20)
    after = taken(other, 1.2)
    for owner, held, left in (other, [], 5), (one, before, 5), (other, after[:2], 3):
        return_them(owner, held)
        for each in (one, other):
            each.frontier.close(lambda: None)
            each.advance(0.2)
        assert (len(before), len(after), counted(redis_client)) == (20, 5, {left})


def test_requests_that_are_set_aside_for_a_held_site_are_not_counted(
    redis_client: redis.Redis, two: Callable[[dict[str, Any]], tuple[Owner, Owner]]
) -> None:
    one, _ = two({**FAST, "quotas": ((12, HOUR_MS),)})
    one.frontier.listeners.names = lambda payload: iter([LANE])
    held = taken(one, 0.3)
    holds.change(redis_client, KEYS, {f"site:{LANE}": Hold(word=HoldKind.PAUSE)})
    one.advance(1.2)
    assert all(one.frontier.park(lease.id, iter([LANE])) for lease in held)
    one.advance(0.2)
    assert counted(redis_client) == {0}


def test_suspects_that_are_withheld_are_not_counted(redis_client: redis.Redis) -> None:
    """Of those that were at work in several deaths each process tries one."""
    limit(redis_client, **FAST, quotas=((12, HOUR_MS),))
    one = Owner(redis_client, "one", concurrency=30).open()
    redis_client.zadd(KEYS.lane(LANE), {bytes(7) + bytes([n, 9]) + b"suspect": 0 for n in range(8)})
    redis_client.zadd(KEYS.lanes(), {LANE: 0})
    assert len(taken(one, 0.5)) == 1
    assert counted(redis_client) == {1}


def test_a_permit_counts_once_and_ends(redis_client: redis.Redis) -> None:
    limit(redis_client, **FAST, concurrency=1, quotas=((2, HOUR_MS), (14_400, DAY_MS)))
    permits = LanePermits(redis_client, KEYS.limits)
    assert [permits.ask([LANE]).is_granted for _ in range(2)] == [True, False], "one at a time"
    permits.end(LANE)
    assert [permits.ask([LANE]).is_granted, permits.end(LANE), permits.ask([LANE]).is_granted] == [True, None, False]
    assert counted(redis_client) == {2}


def test_the_limit_that_is_spent_and_when_it_frees_are_shown(
    redis_client: redis.Redis, two: Callable[[dict[str, Any]], tuple[Owner, Owner]]
) -> None:
    one, _ = two({"rate": 1000.0, "burst": 100, "quotas": ((5, HOUR_MS), (100, DAY_MS)), "by": "ops@host"})
    assert len(taken(one, 0.3)) == 5
    [view] = look(redis_client, KEYS.limits, [KEYS], redis_ms(redis_client) / 1000)
    assert (view.condition, view.spent) == (LaneCondition.SPENT, (5, HOUR_MS))
    assert 3600 < view.frees_s <= 3720
    assert view.next_s == pytest.approx(view.frees_s)
    assert view.why in (
        "5 an hour are spent, the next in 61 min (ops@host)",
        "5 an hour are spent, the next in 62 min (ops@host)",
    )
    assert in_one_line([view]) == f"1 spent ({LANE}: {view.limit_spent})"
    [starved] = problems(Overview(sites=ForumSites(lanes=(view,))))
    assert f"15 requests of {LANE} wait, its limits let none go for 6" in starved.what
    assert view.limit_spent in starved.what
    aged = {field: value for field, value in redis_client.hgetall(KEYS.lane_state(LANE)).items() if b":" in field}
    redis_client.hdel(KEYS.lane_state(LANE), *aged)
    for field, value in aged.items():
        window, _, bucket = field.partition(b":")
        redis_client.hset(KEYS.lane_state(LANE), b"%s:%d" % (window, int(bucket) - 62), value)
    [view] = look(redis_client, KEYS.limits, [KEYS], redis_ms(redis_client) / 1000)
    assert (view.condition, view.spent) == (LaneCondition.LIMITED, None), "an hour and two minutes later"


def test_a_quota_that_an_operator_lifts_waits_for_nothing(
    redis_client: redis.Redis, two: Callable[[dict[str, Any]], tuple[Owner, Owner]]
) -> None:
    one, _ = two({"quotas": ((1, DAY_MS),)})
    assert len(taken(one, 0.3)) == 1
    assert redis_client.zscore(KEYS.lanes(), LANE) <= redis_ms(redis_client) + 5_000, "it is looked at again"
    limits.change(redis_client, KEYS.limits, LANE, limits.LaneLimits(concurrency=5))
    redis_client.zadd(KEYS.lanes(), {LANE: 0})
    one.advance(1.2)
    assert len(taken(one, 0.5)) == 5
