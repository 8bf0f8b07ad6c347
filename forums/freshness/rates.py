"""Summary of one scan, input of the policy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import msgspec

from forums.state.forum_states import ForumState


@dataclass(frozen=True, kw_only=True)
class Observation:
    """One scan of a forum. Times are epoch seconds."""

    at: float  # its start
    events: int  # new and changed threads
    threads: int = 0  # rows that it read
    pages: int = 1
    mode: str = "scan"  # scan, deep, index, backfill
    outcome: str = "complete"  # complete, failed, gap
    whole: bool = False  # it went down to the end of the list
    newest_at: float | None = None  # newest and oldest activity among the rows
    oldest_at: float | None = None
    reason: str | None = None


DAY_S = 86_400.0
HOUR_S = 3_600.0

UNKNOWN_RATE = 1 / HOUR_S  # of a forum without any data
PRIOR_EVENTS = 0.5  # weight of the site's other forums as a prior, in changes
SLOW_S, SLOW_EVENTS, SLOWEST_S = 3 * DAY_S, 10, 60 * DAY_S
BURST_EVENTS, BURST_PRIOR_EVENTS, BURST_MIN_S, BURST_MAX_S = 5, 2.0, 20.0, 6 * HOUR_S
SURPRISE, SURPRISED = 5, 0.5  # more changes than this multiple of the expected ones halve the memory
FIRST_EVENTS = 4.0  # weight of the dates on the first list page, in changes
PAGES_WEIGHT = 0.2  # of the newest scan in the smoothed cost


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """Changes a second: now, and in the long run; `low` and `high` are one standard deviation from `mean`."""

    now: float
    mean: float
    low: float
    high: float


def estimate(state: ForumState, now: float, prior: float = UNKNOWN_RATE) -> Estimate:
    """Return the forum's rate at `now`; `prior` is the rate of its site's other forums."""
    shape, mean = PRIOR_EVENTS + state.events, _slow(state, prior)
    memory_s = _burst_s(state, mean)
    fade = math.exp(-max(0.0, now - (state.scanned_at or now)) / memory_s)
    known_s = min(BURST_PRIOR_EVENTS / mean, memory_s)  # bounded: a forum that was silent for a year may become active
    burst = (mean * known_s + state.burst_events * fade) / (known_s + state.burst_exposure * fade)
    spread = mean / math.sqrt(shape)
    return Estimate(now=burst, mean=mean, low=max(0.0, mean - spread), high=mean + spread)


def observe(state: ForumState, scan: Observation) -> ForumState:
    """Return the state after a scan. A scan that was counted already, or began before the last one, changes nothing.

    A backfill reads old threads: it may close a gap, but does not affect rates.
    """
    if scan.mode == "backfill":
        return msgspec.structs.replace(state, **_NO_GAP) if _closes(state, scan) else state
    if state.tried_at is not None and scan.at <= state.tried_at:
        return state
    newest = max((at for at in (state.newest_at, scan.newest_at) if at is not None), default=None)
    tried = msgspec.structs.replace(state, tried_at=scan.at, newest_at=newest)
    if scan.outcome == "failed":
        return msgspec.structs.replace(tried, errors=state.errors + 1, reason=scan.reason, carried=state.carried + scan.events)
    usual = scan.mode == "scan"
    return msgspec.structs.replace(
        tried,
        scanned_at=scan.at,
        deep_at=state.deep_at if usual and state.deep_at is not None else scan.at,
        errors=0,
        carried=0,
        pages=state.pages + PAGES_WEIGHT * (max(1, scan.pages) - state.pages) if usual and state.scanned_at else state.pages,
        **(_first(scan) if state.scanned_at is None else _counted(state, scan)),
        **_gap(state, scan),
    )


_NO_GAP: dict[str, Any] = {"gap_at": None, "gap_from": None, "gap_scans": 0, "reason": None}


def _gap(state: ForumState, scan: Observation) -> dict[str, Any]:
    if scan.outcome == "gap":
        first = state.gap_at is None
        return {
            "gap_at": scan.at if first else state.gap_at,
            "gap_from": state.newest_at if first else state.gap_from,
            "gap_scans": state.gap_scans + 1,
            "reason": scan.reason,
        }
    return {} if state.gap_at is not None and not _closes(state, scan) else _NO_GAP


def _closes(state: ForumState, scan: Observation) -> bool:
    """Return True if a scan has read the gap. In lists without times, any scan that reached known threads has."""
    if state.gap_at is None or scan.outcome != "complete":
        return False
    if scan.whole or state.gap_from is None or scan.oldest_at is None:
        return scan.whole or scan.mode != "backfill"
    return scan.oldest_at <= state.gap_from


def _slow(state: ForumState, prior: float) -> float:
    return (PRIOR_EVENTS + state.events) / (PRIOR_EVENTS / prior + state.exposure)


def _burst_s(state: ForumState, mean: float) -> float:
    """Return the length of the short memory, from the slow rate or the certain present rate (two standard deviations below
    it).
    """
    certain = max(0.0, state.burst_events - 2 * math.sqrt(state.burst_events)) / max(state.burst_exposure, 1e-3)
    return min(max(BURST_EVENTS / max(mean, certain), BURST_MIN_S), BURST_MAX_S)


def _first(scan: Observation) -> dict[str, Any]:
    """Return the sums from the dates of a first list page: each of its threads changed at least once since the oldest date."""
    if scan.oldest_at is None or scan.threads < 2 or scan.at <= scan.oldest_at:
        return {}
    rate = scan.threads / (scan.at - scan.oldest_at)
    exposure = min(FIRST_EVENTS / rate, SLOW_S)
    return {"events": rate * exposure, "exposure": exposure}


def _counted(state: ForumState, scan: Observation) -> dict[str, Any]:
    since = state.scanned_at or scan.at
    elapsed = scan.at - since
    events = scan.events + state.carried
    rate = _slow(state, UNKNOWN_RATE)
    slow = math.exp(-elapsed / min(max(SLOW_S, SLOW_EVENTS / rate), SLOWEST_S))
    if events > SURPRISE + SURPRISE * rate * elapsed:  # the learned rate does not hold any more
        slow *= SURPRISED
    burst = math.exp(-elapsed / _burst_s(state, rate))
    return {
        "events": state.events * slow + events,
        "exposure": state.exposure * slow + elapsed,
        "burst_events": state.burst_events * burst + events,
        "burst_exposure": state.burst_exposure * burst + elapsed,
    }
