"""Requests of a lane count from the time at which Redis decided, however late a busy process reads the answer."""

from __future__ import annotations

import math

import pytest

from redis_components.frontier.messages import Lease, SendSlot
from redis_components.frontier.stock import RedisTime, SharedClock, TimedLeases

REDIS_AHEAD_S = 1000.0


def redis_ms(at: float) -> int:
    return round((at + REDIS_AHEAD_S) * 1000)


def test_an_answer_that_is_read_late_is_placed_by_the_quickest_one() -> None:
    time = RedisTime()
    assert time.here(redis_ms(10.0), 9.999, 10.001) == pytest.approx(10.001)
    assert time.here(redis_ms(11.0), 10.999, 11.3) == pytest.approx(11.001), "300 ms in a busy event loop"


def test_what_the_present_exchange_proves_wrong_is_forgotten() -> None:
    time = RedisTime()
    time.here(redis_ms(10.0), 9.999, 10.001)
    assert time.here(redis_ms(11.0) - 60_000, 10.999, 11.002) == pytest.approx(10.999), "Redis's clock was set back"
    assert time.here(redis_ms(12.0) + 60_000, 11.999, 12.002) == pytest.approx(12.002), "and forward"


def test_a_request_is_too_late_by_the_time_of_redis_and_not_by_that_of_the_answer() -> None:
    timed, lease = TimedLeases(), Lease(0.0, b"", "1.1", b"", lane="site.example")
    timed.add(10.0, SendSlot("site.example", 0.1, 0.012), lease)
    assert timed.take(10.099) == (None, [])
    assert timed.take(10.1 + 0.012 + 0.001) == (None, [lease])


def test_a_rate_that_only_complaints_have_set_gives_nothing_back_for_being_late() -> None:
    """A busy process would be busier for giving back, and fetch a tenth of what it can."""
    timed, lease = TimedLeases(), Lease(0.0, b"", "1.1", b"", lane="site.example")
    timed.add(10.0, SendSlot("site.example", 0.1, math.inf), lease)
    assert timed.take(10.099) == (None, [])
    taken, late = timed.take(15.0)
    assert taken is not None
    assert (taken.id, taken.until, late) == ("1.1", float("inf"), [])


def test_what_a_machine_with_a_wrong_clock_reads_is_stamped_by_that_of_redis(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, here = SharedClock(), 1000.0
    monkeypatch.setattr("time.time", lambda: here)
    clock.learn(0, 0.0)
    clock.learn(999_990, 0.02)
    assert clock.time() == 1000.0, "they may agree"
    clock.learn(1_120_000, 0.02)
    assert clock.time() == pytest.approx(1120.0), "ours is behind; the answer was read at once"
    clock.learn(1_119_990, 0.5)
    assert clock.time() == pytest.approx(1120.0, abs=0.02), "an answer that took long moves nothing"
    clock.learn(880_000, 0.02)
    assert clock.time() == pytest.approx(880.02), "ours was set ahead"
