"""A site that complains is sent less, by all processes, and settles near what it can take."""

from __future__ import annotations

import pytest
import redis

from redis_components.admin import lanes
from redis_components.frontier.messages import NO_FILTER, NewRequest
from redis_components.politeness import limits
from tests.support.owner import KEYS, Owner

LANE = "example.org"
CAPACITY = 20.0


@pytest.fixture
def one(redis_client: redis.Redis) -> Owner:
    return opened(redis_client, "one")


def opened(client: redis.Redis, name: str) -> Owner:
    owner = Owner(client, name, concurrency=30)
    owner.frontier.open()
    owner.clock.advance(0.1)
    return owner


def complain(one: Owner, rate: float, *, single: bool = False) -> None:
    if single:
        one.frontier.wait(LANE, 0.001, rate=rate, single=True)
    else:
        one.frontier.slow_down(LANE, rate)
    one.clock.advance(0.05)


def slowed(client: redis.Redis) -> float:
    return float(client.hget(KEYS.lane_state(LANE), "slowed") or 0)


def rate_now(client: redis.Redis) -> float | None:
    seconds, micros = client.time()
    return lanes.look(client, KEYS.limits, [], int(seconds) + int(micros) / 1e6)[0].state.slowed


def risen(client: redis.Redis, since: tuple[int, int]) -> float:
    """By how much a rate of 10 a second, of which 3 were taken, has risen at most since a time of Redis."""
    (seconds, micros), (first, part) = client.time(), since
    return 0.9 * (0.002 + seconds - first + (micros - part) / 1e6)  # a time is stored in milliseconds


def age(client: redis.Redis, seconds: float) -> None:
    """As if the last complaint were so much longer ago."""
    client.hincrby(KEYS.lane_state(LANE), "slowed_at", -round(seconds * 1000))


def test_a_site_that_complains_gets_less_from_all_processes_once_for_each_moment(redis_client: redis.Redis, one: Owner) -> None:
    other = opened(redis_client, "other")
    complain(one, 10)
    assert slowed(redis_client) == pytest.approx(0.7 * 2 * 10), "two processes send as much"
    other.frontier.slow_down(LANE, 10)
    other.clock.advance(1.1)
    assert slowed(redis_client) == pytest.approx(14)
    assert LANE in one.frontier.limits.lanes | other.frontier.limits.lanes
    for _ in range(60):
        age(redis_client, 2)
        complain(one, 10)
    assert slowed(redis_client) <= 1, "as long as it complains"
    assert slowed(redis_client) >= 0.2, "and never to a stop: for that it has Retry-After"


def test_a_site_that_complained_is_sent_more_until_it_complains_or_half_an_hour_is_over(
    redis_client: redis.Redis, one: Owner
) -> None:
    began = redis_client.time()
    complain(one, 10)
    assert 7 <= (rate_now(redis_client) or 0) <= 7 + risen(redis_client, began)
    age(redis_client, 10)
    assert rate_now(redis_client) == pytest.approx(10, rel=0.02), "in 10 s at the rate of which it complained"
    age(redis_client, -8)
    then, rate = redis_client.time(), rate_now(redis_client) or 0
    assert 8.46 <= rate <= 8.47 + risen(redis_client, began)
    complain(one, 10)  # soon after the last one: its capacity is not what it was thought to be
    after = slowed(redis_client) or 0
    assert 0.7 * rate <= after + 0.001 <= 0.7 * (rate + risen(redis_client, then)) + 0.002
    age(redis_client, 20)
    assert rate_now(redis_client) == pytest.approx(0.85 * after / 0.7, rel=0.02), "in 20 s from then on"
    age(redis_client, 1801)
    assert rate_now(redis_client) is None
    for n in range(100):
        one.frontier.add_request(NewRequest(NO_FILTER, "0", b"%d" % n, LANE))
    one.advance()
    assert one.frontier.take() is not None
    assert LANE not in limits.read(redis_client, KEYS.limits), "it has no limits any more"


def test_near_the_rate_that_a_site_is_known_to_take_it_is_sent_a_little_less_and_asked_less_often(
    redis_client: redis.Redis, one: Owner
) -> None:
    complain(one, 10)
    age(redis_client, 8)
    complain(one, 10)  # at 9.98, before it was tried whether it takes more
    assert slowed(redis_client) == pytest.approx(0.9 * 0.97 * 9.98, rel=0.02)
    for seconds in (20, 40, 80, 120):
        age(redis_client, seconds)
        assert rate_now(redis_client) == pytest.approx(0.97 * 9.95, rel=0.02), (
            "the time of the curve is doubled each time, up to 120 s"
        )
        complain(one, 10)


def test_a_single_refusal_with_a_time_counts_only_where_more_was_tried_than_the_site_takes(
    redis_client: redis.Redis, one: Owner
) -> None:
    complain(one, 10, single=True)
    assert rate_now(redis_client) is None
    complain(one, 10)
    age(redis_client, 4)
    complain(one, 10, single=True)
    assert slowed(redis_client) == pytest.approx(7)
    age(redis_client, 6)
    complain(one, 10, single=True)
    assert slowed(redis_client) == pytest.approx(9, rel=0.05)


def test_a_site_that_can_do_more_than_it_did_is_found_out(redis_client: redis.Redis, one: Owner) -> None:
    complain(one, 10)
    for _ in range(3):  # settled
        age(redis_client, 20)
        complain(one, 10)
    for _ in range(300):
        age(redis_client, 1)
    assert (rate_now(redis_client) or 0) > 20, "within five minutes"


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize(("share", "sent"), [(0.1, 44), (0.3, 8), (0.5, 44), (0.8, 8)])
def test_the_fleet_settles_within_a_tenth_of_what_a_site_takes_whatever_share_of_the_rest_it_refuses(
    redis_client: redis.Redis, one: Owner, share: float, sent: float, single: bool
) -> None:
    """Also where a hiccup at the beginning made the first estimate too low."""
    complain(one, sent)
    rates, refused, last = [], 0.0, 0
    for second in range(120):
        age(redis_client, 1)
        rates.append(rate_now(redis_client) or sent)
        refused += share * max(0.0, rates[-1] - CAPACITY)
        if refused >= 1:
            complain(one, sent, single=single and second > last + 5)
            refused, last = 0.0, second
    settled = sum(rates[60:]) / 60
    assert settled == pytest.approx(CAPACITY, rel=0.1)


def test_a_limit_that_is_lower_counts_and_its_removal_forgets_complaints(redis_client: redis.Redis, one: Owner) -> None:
    limits.change(redis_client, KEYS.limits, LANE, limits.LaneLimits(rate=2))
    complain(one, 50)
    assert slowed(redis_client) == pytest.approx(1.4)
    limits.change(redis_client, KEYS.limits, LANE, None)
    assert redis_client.hgetall(KEYS.lane_state(LANE)) == {}


ODD = [b"nan", b"-nan", b"inf", b"1e308", b"x", b"\xff", b"", b"1.5", b"9" * 400]


@pytest.mark.parametrize("value", ODD)
def test_a_foreign_value_in_the_state_of_a_lane_stops_no_exchange(
    redis_client: redis.Redis, one: Owner, caplog: pytest.LogCaptureFixture, value: bytes
) -> None:
    state = KEYS.lane_state(LANE)
    limits.change(redis_client, KEYS.limits, LANE, limits.LaneLimits.of(rate=50, concurrency=5, per_hour=1000))
    for number in range(3):
        one.frontier.add_request(NewRequest(NO_FILTER, "0", str(number).encode(), LANE))
        one.clock.advance(1)
        if (lease := one.frontier.take()) is not None:
            one.frontier.ack(lease.id)
        complain(one, 10, single=True)
        names = {*redis_client.hkeys(state), *lanes.STATE_FIELDS}
        redis_client.hset(state, mapping=dict.fromkeys(names, value))
    complain(one, 10, single=True)
    limits.change(redis_client, KEYS.limits, LANE, None)
    redis_client.delete(state)
    one.clock.advance(2)
    assert "does not take the exchange" not in caplog.text
