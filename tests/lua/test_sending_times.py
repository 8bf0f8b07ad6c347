"""When requests of a rate are sent: a model of `lib/sending.lua` with a clock that the test sets."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import msgspec
import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from redis_components.politeness.limits import HOUR_MS
from redis_components.server.scripts import LUA
from tests.support.examples import examples

MARGIN_MS = 35
AHEAD_MS = 200
STEPS = """
local steps, rate, answers = cmsgpack.unpack(ARGV[1]), tonumber(ARGV[2]), {}
for n, step in ipairs(steps) do
  local now, wanted, back = step[1], step[2], step[3]
  if back > 0 then free_time('limits', 'lane', back) end
  local known = redis.call('HMGET', 'limits:lane', 'tat', 'times')
  local law = spacing(rate, 1, nil)
  local times, turn, _, log = sending_times(law, known, now, wanted)
  if #times > 0 then take_times('limits:lane', { law = law, log = log, times = times, turn = turn, tat = known[1] }, #times) end
  answers[n] = times
end
return answers
"""
LIB = "\n".join((LUA / "lib" / f"{name}.lua").read_text() for name in ("lanes", "sending"))
LAW = LIB + STEPS
USES = """
math.randomseed(1)
local now, told_at, longest, rare = 1700000000000, 1700000000000, 0, 0
local law, tat = spacing(tonumber(ARGV[1]), tonumber(ARGV[2]), nil), nil
for _ = 1, 3000 do
  local times, turn, _, log = sending_times(law, { tat, '' }, now, 3)
  if #times > 0 then
    local lasts = take_times('limits:lane', { law = law, log = log, times = times, turn = turn, tat = tat }, #times)
    tat = redis.call('HGET', 'limits:lane', 'tat')
    if lasts then rare = rare + 1 else told_at = now end
    longest = math.max(longest, now - told_at)
  end
  now = now + math.random(1, tonumber(ARGV[3]))
end
return { longest, rare }
"""
Step = tuple[int, int, int]


class Lane:
    """What is handed out at `now`; those that are not given back are sent."""

    def __init__(self, client: redis.Redis, rate: float) -> None:
        client.flushdb()
        self._client, self._rate = client, rate
        self.now = 1_700_000_000_000
        self.sent: list[int] = []

    def lease(self, wanted: int, back: int = 0) -> list[int]:
        """The times of those that may be sent soon; `back` was not sent."""
        if back:
            self.sent.remove(back)
        steps = msgspec.msgpack.encode([(self.now, wanted, back)])
        (times,) = self._client.eval(LAW, 0, steps, self._rate)
        self.sent += times
        return list(times)

    def most_in(self, window_ms: float) -> int:
        times = sorted(self.sent)
        return max((sum(at <= other < at + window_ms for other in times[n:]) for n, at in enumerate(times)), default=0)

    def run(self, steps: Sequence[Step]) -> None:
        """Each: ms that pass, requests that are wanted, which of the last ones was not sent (0: none)."""
        for passed, wanted, lost in steps:
            self.now += passed
            ahead = [at for at in self.sent if at > self.now - 100]
            self.lease(wanted, ahead[-lost] if 0 < lost <= len(ahead) else 0)


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True)
@given(
    rate=st.sampled_from([0.5, 1.0, 2.0, 7.0, 20.0, 100.0]),
    steps=st.lists(st.tuples(st.integers(0, 300), st.integers(0, 9), st.integers(0, 6)), min_size=5, max_size=80),
)
def test_no_window_holds_more_than_the_rate_whatever_is_given_back(
    redis_client: redis.Redis, rate: float, steps: list[Step]
) -> None:
    lane = Lane(redis_client, rate)
    lane.lease(1)
    lane.run(steps)
    most = max(1, int(rate))
    window_ms = most * 1000 / rate + MARGIN_MS
    assert lane.most_in(window_ms - 1) <= most
    closest = min((later - sooner for sooner, later in pairwise(sorted(lane.sent))), default=1e9)
    assert closest >= 0.7 * window_ms / most - 1, "what is caught up with does not come at once"
    assert all(at <= lane.now + AHEAD_MS for at in lane.sent)


def test_times_that_are_given_back_are_used_by_others(redis_client: redis.Redis) -> None:
    """One request of 25 is not sent, which is noticed 30 ms after its time."""
    lane, due, count = Lane(redis_client, 20.0), list[int](), 0
    begun = lane.now
    while lane.now < begun + 20_000:
        late = next((at for at in due if at < lane.now - 30), 0)
        due = [at for at in due if at != late]
        for at in lane.lease(4, late):
            count += 1
            due += [at] if count % 25 == 0 else []
        lane.now += 10
    assert lane.most_in(1000 + MARGIN_MS - 1) <= 20
    assert sum(at < begun + 20_000 for at in lane.sent) / 20 >= 19, "19.14 with all of them; 18.4 where a time is lost"


def test_requests_are_evenly_apart_where_all_are_sent(redis_client: redis.Redis) -> None:
    lane = Lane(redis_client, 20.0)
    for _ in range(600):
        lane.lease(4)
        lane.now += 10
    times = sorted(lane.sent)
    assert {later - sooner for sooner, later in pairwise(times)} <= {52, 53}


def test_a_clock_that_was_ahead_does_not_stop_a_lane(redis_client: redis.Redis) -> None:
    lane = Lane(redis_client, 20.0)
    lane.lease(4)
    lane.now -= 3_600_000
    lane.sent.clear()
    for _ in range(400):
        lane.lease(4)
        lane.now += 10
    assert 70 <= len(lane.sent) <= 80, "19 a second"


@pytest.mark.parametrize(
    ("rate", "burst", "pause_ms"), [(20, 1, 90_000), (0.0002, 1, 9_000_000), (1, 5000, 90_000), (1, 500, 90_000)]
)
def test_the_state_of_a_lane_in_use_is_told_to_last_long_before_it_ends(
    redis_client: redis.Redis, rate: float, burst: int, pause_ms: int
) -> None:
    redis_client.flushdb()
    longest_ms, spared = redis_client.eval(LIB + USES, 0, rate, burst, pause_ms)
    assert longest_ms < 6 * HOUR_MS, "it lasts 48 hours"
    assert (spared > 1000) == (burst < 3600 and rate > 0.001), "not told each time"
