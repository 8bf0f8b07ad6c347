"""The square-root rule under a site's budget: the time from each forum's last scan to its next one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from forums.state.forum_states import ForumState

from .rates import HOUR_S, UNKNOWN_RATE, estimate

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

    `recent`: state of the page of the newest messages, by its name, which gets an interval, too. Changes shown there do not count
    for scans, so the scans' rates cover the other changes: the page is trusted as far as it has proved right. If it is new, or
    fails, its rate is shared out to the forums.
    """
    demands = demand(states, now)
    for name, state in (recent or {}).items():
        demands = _with_recent(demands, name, state, now)
        states = {**states, name: state}
    paid = price(demands, budget, limits)
    found = {}
    for forum, state in states.items():
        due_s = interval(demands[forum], paid, limits) if state.tried_at is not None else 0.0
        found[forum] = min(due_s * BACK_OFF ** min(state.errors, 30), limits.max_s) if state.errors else due_s
    return found


def _with_recent(demands: Mapping[str, Demand], name: str, recent: ForumState, now: float) -> dict[str, Demand]:
    rate = estimate(recent, now).now
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
    return {forum: Demand(rate=estimate(state, now, prior).now, cost=max(1.0, state.pages)) for forum, state in states.items()}


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
