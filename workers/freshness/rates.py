"""How often a forum changes, estimated from its scans.

A scan sees how many threads changed since the one before it: a Poisson count over a known time. With a Gamma prior the rate's
mean is `(a + events) / (b + exposure)`, and old sums decay exponentially, so that the estimate follows (discount factors as in
West and Harrison, Bayesian Forecasting and Dynamic Models, 2nd ed. 1997). Two memories of it:

- *slow*: three days, or ten changes where those take longer: what the forum is like. Its prior: the site's other forums.
- *burst*: five changes, at most six hours: what happens now. Its prior is the slow one, worth two changes.

Day and night multiply both: an hour's weight is what all forums of the site had in it over what they would have had without it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import msgspec

from .state import HOURS, ForumState, Observation, Season

DAY_S = 86_400.0
HOUR_S = 3_600.0

UNKNOWN_RATE = 1 / HOUR_S  # of a forum of which nobody knows anything
PRIOR_EVENTS = 0.5  # how many changes the site's other forums are worth as an opinion about this one
SLOW_S, SLOW_EVENTS, SLOWEST_S = 3 * DAY_S, 10, 60 * DAY_S
BURST_EVENTS, BURST_PRIOR_EVENTS, BURST_MIN_S, BURST_MAX_S = 5, 2.0, 20.0, 6 * HOUR_S
FIRST_EVENTS = 4.0  # what the dates on the first list page are worth, in changes
SEASON_S = 14 * DAY_S
SEASON_PRIOR_EVENTS = 6.0
PAGES_WEIGHT = 0.2  # of the newest scan in the smoothed cost


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """Changes a second: at this moment, and averaged over the day; `low` and `high` are one standard deviation from `mean`."""

    now: float
    mean: float
    low: float
    high: float


FLAT = Season()


def weights(season: Season) -> tuple[float, ...]:
    """The weight of each hour (UTC), 1 on average."""
    raw = [
        (seen + SEASON_PRIOR_EVENTS) / (due + SEASON_PRIOR_EVENTS) for seen, due in zip(season.seen, season.expected, strict=True)
    ]
    smooth = [raw[hour - 1] / 4 + raw[hour] / 2 + raw[(hour + 1) % HOURS] / 4 for hour in range(HOURS)]
    mean = sum(smooth) / HOURS
    return tuple(weight / mean for weight in smooth)


def estimate(state: ForumState, now: float, hours: tuple[float, ...] = (1.0,) * HOURS, prior: float = UNKNOWN_RATE) -> Estimate:
    """The forum's rate at `now`; `hours` are `weights` of its site, `prior` is the rate of its site's other forums."""
    shape, mean = PRIOR_EVENTS + state.events, _slow(state, prior)
    fade = math.exp(-max(0.0, now - (state.scanned_at or now)) / _burst_s(mean))
    burst = (BURST_PRIOR_EVENTS + state.burst_events * fade) / (BURST_PRIOR_EVENTS / mean + state.burst_exposure * fade)
    spread = mean / math.sqrt(shape)
    return Estimate(now=burst * _weight(hours, now), mean=mean, low=max(0.0, mean - spread), high=mean + spread)


def observe(state: ForumState, scan: Observation, hours: tuple[float, ...] = (1.0,) * HOURS) -> ForumState:
    """The state after a scan. One that was learned already, or that began before the last one, changes nothing."""
    if state.tried_at is not None and scan.at <= state.tried_at:
        return state
    newest = max((at for at in (state.newest_at, scan.newest_at) if at is not None), default=None)
    state = msgspec.structs.replace(state, tried_at=scan.at, newest_at=newest)
    if scan.outcome == "failed":
        return msgspec.structs.replace(state, errors=state.errors + 1, reason=scan.reason, carried=state.carried + scan.events)
    learned = _first(scan) if state.scanned_at is None else _counted(state, scan, hours)
    gap = scan.outcome == "gap"
    deep = scan.mode == "deep" and not gap
    return msgspec.structs.replace(
        state,
        scanned_at=scan.at,
        deep_at=scan.at if deep or (state.deep_at is None and not gap) else state.deep_at,
        gap_at=(state.gap_at or scan.at) if gap else None if deep or state.gap_at is None else state.gap_at,
        errors=0,
        reason=scan.reason if gap else None if deep or state.gap_at is None else state.reason,
        carried=0,
        pages=state.pages if scan.mode == "deep" else state.pages + PAGES_WEIGHT * (max(1, scan.pages) - state.pages),
        **learned,
    )


def observe_season(season: Season, state: ForumState, scan: Observation) -> Season:
    """The site's day after a scan of one of its forums, which was in `state` before the scan."""
    if state.scanned_at is None or scan.outcome == "failed" or state.events < SLOW_EVENTS / 2 or scan.at <= state.scanned_at:
        return season
    if scan.at - state.scanned_at > DAY_S:  # says nothing about hours
        return season
    hours, rate = weights(season), _slow(state, UNKNOWN_RATE)
    parts = list(_hours_between(state.scanned_at, scan.at))
    whole = sum(span * hours[hour] for hour, span in parts)
    fade = math.exp(-max(0.0, scan.at - season.at) / SEASON_S)
    seen, expected = [n * fade for n in season.seen], [n * fade for n in season.expected]
    for hour, span in parts:
        seen[hour] += (scan.events + state.carried) * span * hours[hour] / whole
        expected[hour] += rate * span
    return Season(seen=tuple(seen), expected=tuple(expected), at=max(scan.at, season.at))


def _slow(state: ForumState, prior: float) -> float:
    return (PRIOR_EVENTS + state.events) / (PRIOR_EVENTS / prior + state.exposure)


def _burst_s(rate: float) -> float:
    return min(max(BURST_EVENTS / rate, BURST_MIN_S), BURST_MAX_S)


def _first(scan: Observation) -> dict[str, float]:
    """What the dates on a first list page say: each of its threads has changed since the oldest of them, at least once."""
    if scan.oldest_at is None or scan.threads < 2 or scan.at <= scan.oldest_at:
        return {}
    events = min(FIRST_EVENTS, scan.threads)
    exposure = events * (scan.at - scan.oldest_at) / scan.threads
    return {"events": events, "exposure": exposure}


def _counted(state: ForumState, scan: Observation, hours: tuple[float, ...]) -> dict[str, float]:
    since = state.scanned_at or scan.at
    elapsed = scan.at - since
    events = scan.events + state.carried
    exposure = sum(span * hours[hour] for hour, span in _hours_between(since, scan.at)) if elapsed < 2 * DAY_S else elapsed
    rate = _slow(state, UNKNOWN_RATE)
    slow = math.exp(-elapsed / min(max(SLOW_S, SLOW_EVENTS / rate), SLOWEST_S))
    burst = math.exp(-elapsed / _burst_s(rate))
    return {
        "events": state.events * slow + events,
        "exposure": state.exposure * slow + exposure,
        "burst_events": state.burst_events * burst + events,
        "burst_exposure": state.burst_exposure * burst + exposure,
    }


def _weight(hours: tuple[float, ...], at: float) -> float:
    """Between the middles of two hours the weight goes in a straight line."""
    place = at / HOUR_S - 0.5
    hour = math.floor(place)
    part = place - hour
    return hours[hour % HOURS] * (1 - part) + hours[(hour + 1) % HOURS] * part


def _hours_between(start: float, end: float) -> Iterator[tuple[int, float]]:
    """Hour of the day (UTC) and seconds in it, of each hour between two times."""
    while start < end:
        border = min(end, (math.floor(start / HOUR_S) + 1) * HOUR_S)
        yield math.floor(start / HOUR_S) % HOURS, border - start
        start = border
