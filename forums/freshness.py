"""Due times of scans of forums and of checks of threads: pure functions of state and time, without Redis or a database.

**What is optimised.** A list page costs a request, also an empty one; threads found on it are fetched in any case. With scans `T`
apart and `r` changes a second, a change waits `T/2` on average, and `r T/2` changes wait at any moment (Little's law). The policy
minimises the number of changes that wait, which is the mean delay "published → stored" times the rate of all changes, subject to
the requests that a site may be sent: `sum(cost / T) <= budget`. Lagrange's condition gives the square-root rule

    T_i = K * sqrt(cost_i / r_i),     K such that the budget is spent

as in Sia, Cho and Cho (Efficient monitoring algorithm for fast news alerts, IEEE TKDE 19(7), 2007) for feeds. That the scans of
one forum are to be spaced evenly is shown by Coffman, Liu and Weber (Optimal robot scheduling for web search engines, Journal
of Scheduling 1(1), 1998). A site that bounds `T` (`min_interval_s`, `max_interval_s`) fixes some `T_i`; the others share what
is left.

**Why not freshness itself.** Cho and Garcia-Molina (Effective page refresh policies for web crawlers, ACM TODS 28(4), 2003)
maximise the share of time a copy is up to date, `(1 - exp(-r T)) / (r T)`; Wolf et al. (Optimal crawling strategies for web
search engines, WWW 2002) the same for other processes and with the users' clicks as weights. Where `r T` is small both
objectives are the same to the first order: `1 - r T/2`. Where it is large, theirs gives up the busiest forums, whose posts are
the ones that users wait for. Azar, Horvitz, Lubetzky, Peres and Shahaf (Tractable near-optimal policies for crawling, PNAS
115(32), 2018) find it in near-linear time for random crawl times; Kolobov, Peres, Lubetzky and Horvitz (Staying up to date with
online content changes using reinforcement learning for scheduling, NeurIPS 2019) lie in between, with a penalty that grows like
the harmonic numbers. `benchmarks/forums/freshness.py` compares them. The linear penalty has another advantage where rates are not
known: its expectation depends on the mean of the estimate alone, so the policy may act on that as if it were the truth.

**Rates.** A scan counts how many threads changed since the scan before it: a Poisson count over a known time. With a Gamma prior
the rate's mean is `(a + events) / (b + exposure)`, and old sums decay exponentially, so that the estimate follows (discount
factors as in West and Harrison, Bayesian Forecasting and Dynamic Models, 2nd ed. 1997). There are two memories. *Slow*: three
days, or ten changes where they take longer; its prior is the site's other forums. *Burst*: five changes, at most six hours; its
prior is the slow one, worth two changes. The short memory follows day and night, too. Weights of the hours, learned from all
forums of a site, gained nothing: a factor of all rates of a site does not change how its budget is divided.

**Checks of threads** for edits and deletions that a list page does not show. Most come soon after a post: their rate falls with
the time since the thread's newest post, not with its own age (Olston and Pandey, Recrawl scheduling based on information
longevity, WWW 2008). With the rate `h` and the cost of a check, the square-root rule gives the time to the next check,
`T = K sqrt(cost / h)`. How fast the rate falls differs between sites, and is unknown before edits were seen. If it falls like
1/age, `T` should grow with the root of the age; if authors edit within hours and then no more, with the age. A power between them
is near the best of both (`benchmarks/forums/rechecks.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from forums.state.keys import ForumState


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


def estimate(state: ForumState, now: float, prior: float = UNKNOWN_RATE) -> float:
    """Return the forum's changes a second at `now`; `prior` is the rate of its site's other forums."""
    mean = _slow(state, prior)
    memory_s = _burst_s(state, mean)
    fade = math.exp(-max(0.0, now - (state.scanned_at or now)) / memory_s)
    known_s = min(BURST_PRIOR_EVENTS / mean, memory_s)  # bounded: a forum that was silent for a year may become active
    return (mean * known_s + state.burst_events * fade) / (known_s + state.burst_exposure * fade)


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
        first_at=scan.at if state.scanned_at is None else state.first_at,
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


LEARNING = 4.0
"""Times the site's `min_interval_s` to the second scan of a new forum: the dates of its first page may promise less."""
_STEPS = 40  # of the bisection; each halves the error
BACK_OFF = 2.0  # factor of the interval for each consecutive failed scan


@dataclass(frozen=True, kw_only=True)
class IntervalBounds:
    """Shortest and longest time between two scans of a forum, in seconds."""

    min_s: float
    max_s: float

    def clamp(self, interval_s: float) -> float:
        """Return the nearest allowed interval."""
        return min(max(interval_s, self.min_s), self.max_s)


@dataclass(frozen=True, kw_only=True)
class Demand:
    """Demand of a forum: its changes a second, and the requests of a scan."""

    rate: float
    cost: float


PROOF = 64.0
"""While the page of the newest messages shows all changes, lists are scanned less often, by the root of this factor."""


def intervals(
    states: Mapping[str, ForumState],
    budget: float,
    *,
    now: float,
    limits: IntervalBounds,
    recent: Mapping[str, ForumState] | None = None,
) -> dict[str, float]:
    """Return the seconds from each forum's last scan to its next one; `budget`: requests an hour for all forums together.

    0 for a forum that was never scanned: it is due, since its first list page is better than any estimate. After each failed scan
    the interval doubles, up to `limits.max_s`.

    No forum waits for longer than it has been watched: the second scan comes soon, and from then on the distance doubles until
    what was observed decides, since the dates of a first page may be of openings. Not sooner than the budget scans all once.

    `recent`: state of the page of the newest messages, by its name, which gets an interval, too. Changes shown there do not count
    for scans, so the scans' rates cover the other changes: the page is trusted as far as it has proved right. If it is new, or
    fails, its rate is shared out to the forums.
    """
    demands = demand(states, now)
    for name, state in (recent or {}).items():
        demands = _with_recent(demands, name, state, now)
        states = {**states, name: state}
    paid = price(demands, budget, limits)
    found, round_s = {}, len(states) * HOUR_S / max(budget, 1e-3)
    for forum, state in states.items():
        due_s = interval(demands[forum], paid, limits) if state.tried_at is not None else 0.0
        if state.first_at is not None and state.scanned_at is not None:
            watched_s = max(state.scanned_at - state.first_at, LEARNING * limits.min_s, round_s)
            due_s = min(due_s, limits.clamp(watched_s))
        found[forum] = min(due_s * BACK_OFF ** min(state.errors, 30), limits.max_s) if state.errors else due_s
    return found


def _with_recent(demands: Mapping[str, Demand], name: str, recent: ForumState, now: float) -> dict[str, Demand]:
    rate = estimate(recent, now)
    part = rate / max(1, len(demands))
    is_well = recent.scanned_at is not None and not recent.errors
    found = {
        forum: Demand(rate=max(one.rate, part / PROOF) if is_well else one.rate + part, cost=one.cost)
        for forum, one in demands.items()
    }
    return {**found, name: Demand(rate=rate, cost=max(1.0, recent.pages))}


def demand(states: Mapping[str, ForumState], now: float) -> dict[str, Demand]:
    """Return rate and cost of each forum at `now`; for little-known forums they are drawn to the site's other forums."""
    prior = _typical(states)
    return {forum: Demand(rate=estimate(state, now, prior), cost=max(1.0, state.pages)) for forum, state in states.items()}


def price(demands: Mapping[str, Demand], budget: float, limits: IntervalBounds) -> float:
    """Return K of the rule: the number with which all forums together cost `budget` requests an hour, as near as `limits` allow.

    At least the root of `limits.min_s`: however large the budget is, a forum is not scanned more often than the geometric mean of
    the shortest interval and the time between two of its changes. More requests would hardly ever find anything.
    """
    lengths = [(one.cost, math.sqrt(one.cost / one.rate)) for one in demands.values()]
    least = math.sqrt(limits.min_s)
    if not lengths:
        return least
    shortest, longest = limits.min_s, limits.max_s
    low, high = math.log(least), math.log(max(limits.max_s / min(n for _, n in lengths), 2 * least))
    for _ in range(_STEPS):
        middle = (low + high) / 2
        factor, spent = math.exp(middle), 0.0
        for cost, length in lengths:  # no calls: there may be thousands of forums, and the seeder runs every few seconds
            wait = factor * length
            spent += cost / (shortest if wait < shortest else min(wait, longest))
        low, high = (middle, high) if spent * HOUR_S > budget else (low, middle)
    return math.exp(high)


def interval(one: Demand, paid: float, limits: IntervalBounds) -> float:
    """Return the seconds between two scans of a forum at the price `paid`."""
    return limits.clamp(paid * math.sqrt(one.cost / one.rate))


def _typical(states: Mapping[str, ForumState]) -> float:
    """Return the geometric mean of the known rates, since a few boards have most of the posts."""
    known = [math.log(state.events / state.exposure) for state in states.values() if state.events >= 1 and state.exposure > 0]
    return math.exp(sum(known) / len(known)) if known else UNKNOWN_RATE


@dataclass(frozen=True, kw_only=True)
class Rechecks:
    """Recheck policy of a site: threads are checked until `until_s` after their last post. `min_interval_s`, the shortest time
    between scans of its forums, also bounds how often its threads are checked.
    """

    until_s: float = 30 * 86_400.0
    min_interval_s: float = 30.0


RechecksOf = Callable[[str], Rechecks]
"""Returns the policy of a site, by its name."""


SOONEST = 20
"""Times the site's `min_interval_s`: the minimum delay of a check, and the age up to which a thread counts as new."""
POWER = 0.65  # of the age in T
SPARING = 2.0  # factor of T: a month costs a short thread about 27 checks, however large the budget is
EACH_FOUND = 2.0  # weight of a change that was found, in expected changes
LONGEST_S = 7 * 86_400.0


def next_check(
    age_s: float, changes: int = 0, *, recheck_s: float, min_interval_s: float = 30.0, requests: int = 2
) -> float | None:
    """Return the seconds until a thread's next check; None if it is too old to be checked.

    `age_s` is the time since its last post or comment, `changes` the number of edits and deletions that this reading found,
    `recheck_s` the maximum age for checks, `min_interval_s` the site's shortest interval, `requests` the cost of a check.
    """
    if age_s > recheck_s:
        return None
    soonest = SOONEST * min_interval_s
    cheap = math.sqrt(max(1, requests) / 2 / (1 + EACH_FOUND * changes))
    wait: float = SPARING * soonest * (1 + age_s / soonest) ** POWER * cheap
    return min(max(wait, soonest), LONGEST_S)
