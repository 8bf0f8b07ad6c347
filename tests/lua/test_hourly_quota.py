"""600 an hour means 600 in every hour: `lib/pacing.lua` with a clock that the test sets, for three hours."""

from __future__ import annotations

from bisect import bisect_left

import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from redis_components.politeness import limits
from redis_components.politeness.limits import HOUR_MS, LaneLimits
from redis_components.server.scripts import LUA
from tests.support.examples import examples
from tests.support.owner import KEYS

LANE, HOUR = "example.org", 600
HOURS = 3
STEPS = """
local limits, lane, now, till, sent = KEYS[1], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), {}
math.randomseed(tonumber(ARGV[4]))
while now < till do
  local allowed = allowance(limits, lane, redis.call('HGET', limits, lane), now, math.random(1, tonumber(ARGV[5])))
  if allowed then
    spend(limits, lane, allowed, allowed.n, {}, now)
    for _ = 1, allowed.n do sent[#sent + 1] = now end
  end
  now = now + math.random(1, tonumber(ARGV[6]))
end
return sent
"""
PARTS = ("many", "score", "lanes", "ready_requests", "quiet", "sending", "pacing")
LAW = "\n".join((LUA / "lib" / f"{name}.lua").read_text() for name in PARTS)


@settings(max_examples=examples(6), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True)
@given(seed=st.integers(0, 10**6), at_once=st.integers(1, 600), apart_ms=st.integers(4_000, 60_000))
def test_every_hour_has_at_most_what_it_may_and_hardly_less(
    redis_client: redis.Redis, seed: int, at_once: int, apart_ms: int
) -> None:
    """Random wishes at random times; where they are rare, less is wanted than may be sent."""
    redis_client.flushdb()
    limits.change(redis_client, KEYS.limits, LANE, LaneLimits(quotas=((HOUR, HOUR_MS),)))
    begun = 1_700_000_000_000
    sent: list[int] = []
    for hour in range(HOURS):
        arguments = (LANE, begun + hour * HOUR_MS, begun + (hour + 1) * HOUR_MS, seed + hour, at_once, apart_ms)
        sent += redis_client.eval(LAW + STEPS, 1, KEYS.limits, *arguments)
    assert max(bisect_left(sent, at + HOUR_MS) - place for place, at in enumerate(sent)) <= HOUR
    wanted = at_once / apart_ms * HOURS * HOUR_MS
    if wanted > 3 * HOURS * HOUR:
        assert len(sent) >= 0.95 * HOURS * HOUR, "a window is counted in minutes, and the one that leaves counts wholly"
