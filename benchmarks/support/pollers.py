"""Policies for the next scan of a forum: Trawl's, and others for comparison. All get the same scans an hour."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence

from forums.freshness import Demand, ForumState, IntervalBounds, Observation, demand, interval, observe, price

from .posting import DAY, HOUR, Workload

LIMITS = IntervalBounds(min_s=30.0, max_s=DAY)
REPRICED_S = 300.0


class Poller:
    """`due` is asked for each forum after its scan, and for all of them every `REPRICED_S`."""

    def __init__(self, workload: Workload) -> None:
        self.workload = workload
        self.budget = workload.scans_per_hour / HOUR  # scans a second
        self.forums = workload.forums

    def scanned(self, forum: int, scan: Observation) -> None:
        """Record a scan of a forum."""

    def reprice(self, now: float) -> bool:  # noqa: ARG002 - for those that follow the time
        """Recompute the intervals of all forums; return True if due times have changed."""
        return False

    def interval(self, forum: int, now: float) -> float:
        """Seconds between the last scan of a forum and its next one."""
        raise NotImplementedError


class Fixed(Poller):
    """Intervals that never change: uniform polling, and the policies of the literature, which know the rates."""

    def __init__(self, workload: Workload, rule: Callable[[Sequence[float], float], Sequence[float]]) -> None:
        super().__init__(workload)
        self._intervals = [1 / f if f > 0 else math.inf for f in rule(workload.rates(), self.budget)]

    def interval(self, forum: int, now: float) -> float:  # noqa: ARG002
        return self._intervals[forum]


class FixedAge(Poller):
    """As pyspider's `age` with `@every`: a round begins in which every forum that is old enough is queued, and the queue is
    worked off as fast as the site may be asked, in whatever order the forums come.
    """

    def __init__(self, workload: Workload, rng: random.Random) -> None:
        super().__init__(workload)
        self._round_s = self.forums / self.budget
        self._rng, self._number, self._order = rng, -1, list(range(self.forums))

    def interval(self, forum: int, now: float) -> float:
        number = math.floor(now / self._round_s) + 1
        if number != self._number:
            self._number = number
            self._next = self._order
            self._order = self._rng.sample(range(self.forums), self.forums)
        return (number + self._order.index(forum) / self.forums) * self._round_s - now


class Halving(Poller):
    """As Nutch's AdaptiveFetchSchedule: an interval shrinks by 0.2 of itself where something had changed, and grows by 0.4 where
    nothing had (its defaults); here with all intervals scaled to the budget.
    """

    def __init__(self, workload: Workload, shrink: float = 0.2, grow: float = 0.4) -> None:
        super().__init__(workload)
        self._shrink, self._grow, self._scale = shrink, grow, 1.0
        self._intervals = [self.forums / self.budget] * self.forums

    def scanned(self, forum: int, scan: Observation) -> None:
        factor = 1 - self._shrink if scan.events else 1 + self._grow
        self._intervals[forum] = min(max(self._intervals[forum] * factor, LIMITS.min_s), LIMITS.max_s)

    def reprice(self, now: float) -> bool:  # noqa: ARG002
        self._scale = sum(1 / one for one in self._intervals) / self.budget
        return True

    def interval(self, forum: int, now: float) -> float:  # noqa: ARG002
        return self._intervals[forum] * self._scale


class Learned(Poller):
    """Trawl's policy, which knows only the results of its scans."""

    def __init__(self, workload: Workload) -> None:
        super().__init__(workload)
        self.states = {str(forum): ForumState() for forum in range(self.forums)}
        self._demands: dict[str, Demand] = {}
        self._price = 0.0

    def scanned(self, forum: int, scan: Observation) -> None:
        self.states[str(forum)] = observe(self.states[str(forum)], scan)

    def reprice(self, now: float) -> bool:
        self._demands = demand(self.states, now)
        self._price = price(self._demands, self.budget * HOUR, LIMITS)
        return True

    def interval(self, forum: int, now: float) -> float:  # noqa: ARG002
        return interval(self._demands[str(forum)], self._price, LIMITS)


def even(rates: Sequence[float], budget: float) -> list[float]:
    """Uniform polling."""
    return [budget / len(rates)] * len(rates)


def square_root(rates: Sequence[float], budget: float) -> list[float]:
    """Least mean delay: scans in proportion to the roots of the rates (Sia, Cho and Cho 2007)."""
    roots = [math.sqrt(rate) for rate in rates]
    return [budget * root / sum(roots) for root in roots]


def freshest(rates: Sequence[float], budget: float) -> list[float]:
    """Most time up to date, evenly spaced scans (Cho and Garcia-Molina 2003)."""

    def scans(rate: float, worth: float) -> float:
        if rate <= 0 or worth * rate >= 1:
            return 0.0
        # worth = dF/df = (1 - (1 + x) exp(-x)) / rate with x = rate / f, which rises with x
        low, high = 1e-6, 60.0
        for _ in range(60):
            x = math.sqrt(low * high)
            low, high = (x, high) if 1 - (1 + x) * math.exp(-x) < worth * rate else (low, x)
        return rate / high

    return _spent(scans, rates, budget)


def fresh_at_random_times(rates: Sequence[float], budget: float) -> list[float]:
    """Most time up to date where scans come at random times (Azar et al. 2018, section 2): here spaced evenly all the same."""
    return _spent(lambda rate, worth: max(0.0, math.sqrt(rate / worth) - rate), rates, budget)


def harmonic(rates: Sequence[float], budget: float) -> list[float]:
    """Least harmonic penalty (Kolobov et al. 2019, proposition 2)."""
    return _spent(lambda rate, worth: (math.sqrt(rate * rate + 4 * rate / worth) - rate) / 2, rates, budget)


def _spent(scans: Callable[[float, float], float], rates: Sequence[float], budget: float) -> list[float]:
    """Return the scans by the rule with the multiplier that spends the budget; scans fall as `worth` rises."""
    low, high = 1e-15, 1e15
    for _ in range(120):
        worth = math.sqrt(low * high)
        low, high = (worth, high) if sum(scans(rate, worth) for rate in rates) > budget else (low, worth)
    return [scans(rate, high) for rate in rates]
