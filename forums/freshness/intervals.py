"""The square-root rule under a site's budget: how long after its last scan each forum is due."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from forums.state.forum_states import ForumState

from .rates import HOUR_S, UNKNOWN_RATE, estimate

_STEPS = 40  # of the bisection; each halves the error
BACK_OFF = 2.0  # each failed scan in a row waits so many times longer


@dataclass(frozen=True, kw_only=True)
class IntervalBounds:
    """Shortest and longest time between two scans of a forum, in seconds."""

    min_s: float
    max_s: float

    def clamp(self, interval_s: float) -> float:
        """The nearest allowed interval."""
        return min(max(interval_s, self.min_s), self.max_s)


@dataclass(frozen=True, kw_only=True)
class Demand:
    """What a forum asks for: its changes a second, and the requests that a scan of it costs."""

    rate: float
    cost: float


PROOF = 64.0
"""While the page of the newest messages tells of all changes, lists are scanned at the root of this more seldom."""


def intervals(
    states: Mapping[str, ForumState],
    budget: float,
    *,
    now: float,
    limits: IntervalBounds,
    recent: Mapping[str, ForumState] | None = None,
) -> dict[str, float]:
    """Seconds from each forum's last scan to its next one; `budget` is in requests an hour for all of them together.

    0 for a forum that was never scanned: it is due, and its first list page tells more than any guess. A forum whose scans fail
    waits twice as long after each, up to `limits.max_s`.

    `recent`: the page of the newest messages, by its name, which gets an interval, too. What it has told of is not a change for
    the scans, so their rates are of what it does not show: it is trusted as far as it has proved right. Where it is new, or
    fails, each forum has its part of what it told of.
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
    told = estimate(recent, now).now
    part = told / max(1, len(demands))
    is_well = recent.scanned_at is not None and not recent.errors
    found = {
        forum: Demand(rate=max(one.rate, part / PROOF) if is_well else one.rate + part, cost=one.cost)
        for forum, one in demands.items()
    }
    return {**found, name: Demand(rate=told, cost=max(1.0, recent.pages))}


def demand(states: Mapping[str, ForumState], now: float) -> dict[str, Demand]:
    """Rate and cost of each forum as they are at `now`; of one that is hardly known they lean on the site's other forums."""
    prior = _typical(states)
    return {forum: Demand(rate=estimate(state, now, prior).now, cost=max(1.0, state.pages)) for forum, state in states.items()}


def price(demands: Mapping[str, Demand], budget: float, limits: IntervalBounds) -> float:
    """K of the rule: the number that makes all forums together cost `budget` requests an hour, as near as `limits` allow.

    Never less than the root of `limits.min_s`: however large the budget is, a forum is not scanned more often than in the
    geometric mean of the shortest interval and the time between two of its changes. More requests would hardly ever find
    anything.
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
        for cost, length in lengths:  # without calls: there may be thousands of forums, and the seeder asks every few seconds
            wait = factor * length
            spent += cost / (shortest if wait < shortest else min(wait, longest))
        low, high = (middle, high) if spent * HOUR_S > budget else (low, middle)
    return math.exp(high)


def interval(one: Demand, paid: float, limits: IntervalBounds) -> float:
    """Seconds between two scans of a forum at the price `paid`."""
    return limits.clamp(paid * math.sqrt(one.cost / one.rate))


def _typical(states: Mapping[str, ForumState]) -> float:
    """The geometric mean of the rates of those that are known: a few boards have most of the posts."""
    known = [math.log(state.events / state.exposure) for state in states.values() if state.events >= 1 and state.exposure > 0]
    return math.exp(sum(known) / len(known)) if known else UNKNOWN_RATE
