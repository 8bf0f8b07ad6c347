"""The state of each lane, and its reason: the sites that have limits, that asked to be left alone, or that answered badly."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

import redis

from redis_components.keys import CrawlKeys, CrawlRecords, lane_busy_key, lane_state_key
from redis_components.politeness.limits import DAY_MS, HOUR_MS, MINUTE_MS, LaneLimits, quiet_now, read, written
from redis_components.server.scripts import script
from redis_components.server.untrusted_values import server_time

_AT_ONCE = 1000  # lanes that one script looks at
_MOST = 1e15


class LaneState(NamedTuple):
    """The constraints on a lane at a moment, in addition to its limits."""

    left_alone_s: float
    """Its site asked for it; 0.0: it did not."""
    refusals: int
    """By 429 or 503, without half an hour of peace between."""
    refused_s: float
    """Since when."""
    slowed: float | None
    """Requests per second to which complaints have lowered it; None: there were none lately."""
    robots: float | None
    """Requests per second that its robots.txt asks for."""


_NOTHING = LaneState(left_alone_s=0.0, refusals=0, refused_s=0.0, slowed=None, robots=None)
STATE_FIELDS = (
    *("until", "asked", "refusals", "refused_since"),
    *("slowed", "slowed_at", "slowed_top", "slowed_return"),
    *("robots_rate", "robots_at"),
)
PEACE_S, RETURN_S = 1800, 20
"""As in `lib/pacing.lua`."""


def state_from(values: Sequence[bytes | None], now: float) -> LaneState:
    """Return the state of a lane from the values of STATE_FIELDS."""
    if not any(values):  # as of most
        return _NOTHING
    until, asked, refusals, since, slowed, slowed_at, top, return_s, robots, robots_at = map(_number, values)
    is_refusing = max(until, asked) / 1000 > now - PEACE_S
    is_slowed = slowed > 0 and slowed_at / 1000 > now - PEACE_S
    return LaneState(
        left_alone_s=max(0.0, until / 1000 - now),
        refusals=int(refusals) if is_refusing else 0,
        refused_s=max(0.0, now - since / 1000) if is_refusing and since else 0.0,
        slowed=_recovered(slowed, now - slowed_at / 1000, top, return_s or RETURN_S) if is_slowed else None,
        robots=robots if robots > 0 and robots_at / 1000 > now - 2 * DAY_MS / 1000 else None,
    )


def _recovered(slowed: float, seconds: float, top: float, return_s: float) -> float:
    """Return the recovered rate, as `slowed_rate` of `lib/pacing.lua`."""
    gap, left = max(top - slowed, 0.1 * top), 1 - max(0.0, seconds) / max(1.0, return_s)
    return max(slowed, float(top - gap * left**3))


def _number(value: bytes | None) -> float:
    try:
        number = float(value or 0)
    except ValueError:
        return 0.0
    return number if abs(number) < _MOST else 0.0  # "nan" and "inf" are none


class LaneCondition(StrEnum):
    """The reason why requests of a lane are not sent as fast as they come."""

    LEFT_ALONE = "left alone"  # its site asked for it
    QUIET = "quiet"  # its quiet hours
    SPENT = "spent"  # it got all that it may in an hour or a day
    SLOWED = "slowed"  # its site complained, and is sent less for a while
    LIMITED = "limited"  # by an operator, the site file or robots.txt
    FREE = "free"  # none of these; it is forgotten soon


@dataclass(frozen=True, kw_only=True)
class LaneView:
    """One lane at one moment."""

    lane: str
    limits: LaneLimits
    state: LaneState
    rate_now: float | None
    """Requests per second: the slowest of the limit, robots.txt and complaints; None: no limit."""
    at_work: int | None
    """Requests at work, where there is a limit of them."""
    waiting: int
    """Requests that wait in the lane, of all crawls that were looked at."""
    quiet_s: float | None
    """For how many seconds its quiet hours last; None: it has none now."""
    next_s: float | None
    """In how many seconds one of them may be leased; None where none waits."""
    spent: tuple[int, int] | None = None
    """(requests, window in ms) of the quota of which nothing is left."""
    frees_s: float = 0.0
    """In how many seconds one more of it may be sent."""

    @property
    def condition(self) -> LaneCondition:
        """The strongest reason first."""
        if self.state.left_alone_s > 0:
            return LaneCondition.LEFT_ALONE
        if self.quiet_s is not None:
            return LaneCondition.QUIET
        if self.spent is not None:
            return LaneCondition.SPENT
        if self.state.slowed is not None and self.rate_now == self.state.slowed:
            return LaneCondition.SLOWED
        own = self.limits
        limited = self.rate_now is not None or own.concurrency is not None or own.quotas or own.quiet
        return LaneCondition.LIMITED if limited else LaneCondition.FREE

    @property
    def why(self) -> str:
        """One line for an operator."""
        state = self.state
        if state.refusals > 1 and state.refused_s >= 1:
            return f"refused {state.refusals} times in {state.refused_s / 60:.0f} min"
        if state.left_alone_s > 0:
            return "the site asked for it"
        if self.quiet_s is not None:
            return f"quiet hours: {written(self.limits.quiet_hours)}"
        if self.spent is not None:
            return f"{self.limit_spent} ({self.limits.by})" if self.limits.by else self.limit_spent
        if self.condition is LaneCondition.SLOWED:
            return "the site answered badly"
        if state.robots is not None and self.rate_now == state.robots:
            return "robots.txt"
        return self.limits.by

    @property
    def limit_spent(self) -> str:
        """The limit that is spent and when it frees: `600 an hour are spent, 12 min`; "" where none is."""
        if self.spent is None:
            return ""
        most, window_ms = self.spent
        window = {MINUTE_MS: "a minute", HOUR_MS: "an hour", DAY_MS: "a day"}.get(window_ms, f"in {window_ms / 1000:g} s")
        frees = f"{self.frees_s / 60:.0f} min" if self.frees_s >= 90 else f"{self.frees_s:.0f} s"
        return f"{most:,} {window} are spent, the next in {frees}"


def in_one_line(lanes: Sequence[LaneView], most_named: int = 3) -> str:
    """Return the lanes that get nothing now, or less than their limits allow, with the reason; "" for none: `1 quiet (a)`."""
    parts = []
    for condition in (LaneCondition.LEFT_ALONE, LaneCondition.QUIET, LaneCondition.SPENT, LaneCondition.SLOWED):
        found = [f"{one.lane}: {one.limit_spent}" if one.spent else one.lane for one in lanes if one.condition is condition]
        if found:
            more = ", …" if len(found) > most_named else ""
            parts.append(f"{len(found):,} {condition.value} ({', '.join(found[:most_named])}{more})")
    return ", ".join(parts)


def look(
    client: redis.Redis,
    limits_key: str,
    crawls: Iterable[CrawlKeys],
    now: float,
    *,
    first: Iterable[str] = (),
    most: int | None = None,
) -> list[LaneView]:
    """Return all lanes at `now` (epoch s of Redis), by name; or `most` of them, the ones in `first` before others. Four round
    trips. Raises `redis.RedisError`.
    """
    keys, known, wanted = list(crawls), read(client, limits_key), set(first)
    lanes = sorted(sorted(known, key=lambda lane: lane not in wanted)[:most])
    if not lanes:
        return []
    counted = [lane for lane in lanes if known[lane].concurrency is not None]
    states = _states(client, limits_key, [lane_state_key(limits_key, lane) for lane in lanes], now)
    with client.pipeline(transaction=False) as pipe:
        for lane in counted:
            pipe.zcount(lane_busy_key(limits_key, lane), now * 1000, "+inf")
        for one in keys:
            pipe.zcard(one.lanes())
        found = iter(pipe.execute())
    busy = dict(zip(counted, found))  # noqa: B905 - the iterator goes on
    waiting = _waiting(client, lanes, [one for one, number in zip(keys, found, strict=True) if number])
    return [
        _view(lane, known[lane], state, busy.get(lane), waiting[lane], now) for lane, state in zip(lanes, states, strict=True)
    ]


def as_dicts(client: redis.Redis, key: str, only: str | None = None) -> list[dict[str, Any]]:
    """Return every lane, or one, for programs: its limits, its state and why. Raises `redis.RedisError`."""
    crawls = [record.keys for record in CrawlRecords(client).all().values()]
    return [_fields(one) for one in look(client, key, crawls, server_time(client)) if only in (None, one.lane)]


def _fields(one: LaneView) -> dict[str, Any]:
    own, state = one.limits, one.state
    return {
        "site": one.lane,
        "state": one.condition.value,
        "why": one.why,
        "rate": own.rate,
        "burst": own.burst if own.rate else None,
        "concurrency": own.concurrency,
        "weight": own.weight,
        "per_minute": own.within(MINUTE_MS),
        "per_hour": own.within(HOUR_MS),
        "per_day": own.within(DAY_MS),
        "quiet": written(own.quiet_hours) or None,
        "by": own.by,
        "rate_now": one.rate_now,
        "robots_rate": state.robots,
        "slowed_to": state.slowed,
        "at_work": one.at_work,
        "waiting": one.waiting,
        "next_s": one.next_s,
        "left_alone_s": round(state.left_alone_s, 1),
        "quiet_s": one.quiet_s,
        "refusals": state.refusals,
        "refused_s": state.refused_s,
    }


def _states(client: redis.Redis, limits_key: str, keys: list[str], now: float) -> Iterator[list[Any]]:
    """Yield the state of each lane: a command for each would be half of what a look at 200 lanes costs."""
    states = script("lane_states")
    parts = [keys[begin : begin + _AT_ONCE] for begin in range(0, len(keys), _AT_ONCE)]
    calls = [
        states.operands({"limits": limits_key, "states": part}, {"now": now * 1000, "fields": STATE_FIELDS}) for part in parts
    ]
    for reply in states.each(client, calls):
        if isinstance(reply, redis.ResponseError):
            raise reply
        yield from reply


@dataclass(kw_only=True)
class _Waiting:
    """The requests that wait in one lane, over all crawls."""

    size: int = 0
    due: list[float] = field(default_factory=list)  # when one may be leased (ms)


def _waiting(client: redis.Redis, lanes: list[str], keys: list[CrawlKeys]) -> defaultdict[str, _Waiting]:
    """Return the requests in each lane, of crawls that have lanes; the others are not queried."""
    found: defaultdict[str, _Waiting] = defaultdict(_Waiting)
    sizes = script("lane_sizes")
    calls = [
        sizes.operands({"lanes": one.lanes(), "of_lanes": [one.lane(lane) for lane in lanes]}, {"names": lanes}) for one in keys
    ]
    for reply in sizes.each(client, calls) if calls else ():
        if isinstance(reply, redis.ResponseError):
            raise reply
        for lane, due, size in zip(lanes, reply[::2], reply[1::2], strict=True):
            if due:
                of_lane = found[lane]
                of_lane.due.append(float(due))
                of_lane.size += size
    return found


def _view(lane: str, limited: LaneLimits, values: list[Any], busy: int | None, waiting: _Waiting, now: float) -> LaneView:
    next_ms, most, window_ms, frees_ms = values[:4]
    state = state_from(values[4:], now)
    rates = [rate for rate in (limited.rate, state.slowed, state.robots) if rate is not None]
    quiet_s = quiet_now(limited.quiet_hours, now)
    return LaneView(
        lane=lane,
        limits=limited,
        state=state,
        rate_now=min(rates, default=None),
        at_work=busy,
        waiting=waiting.size,
        quiet_s=quiet_s,
        next_s=max(quiet_s or 0.0, next_ms / 1000 - now, min(waiting.due) / 1000 - now) if waiting.due else None,
        spent=(most, window_ms) if window_ms else None,
        frees_s=max(0.0, frees_ms / 1000 - now),
    )
