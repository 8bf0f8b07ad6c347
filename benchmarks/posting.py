"""Posting as forums have it: streams of changes for `benchmarks/freshness.py`. Times in seconds, 0 is a midnight (UTC)."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass

HOUR, DAY = 3600.0, 86_400.0
HISTORY_S = 10 * DAY  # before the first scan: its list page shows it
BURST_SHARE = 0.6  # of the changes answer another one (branching ratio of a Hawkes process)
BURST_S = 1800.0  # their mean distance from it


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A site with forums. `skew`: exponent of the power law over them; `load`: changes for each scan that the budget allows."""

    name: str
    skew: float
    load: float
    day: float = 0.0  # depth of the night, 0 to 1
    bursts: bool = False
    weekend: float = 1.0  # weight of Saturday and Sunday
    silent: float = 0.0  # share of forums in which nothing happens
    forums: int = 60
    scans_per_hour: float = 360.0

    def rates(self) -> list[float]:
        """Changes a second of each forum, in the long run."""
        alive = self.forums - round(self.silent * self.forums)
        raw = [1 / (place + 1) ** self.skew if place < alive else 0.0 for place in range(self.forums)]
        return [one * self.load * self.scans_per_hour / HOUR / sum(raw) for one in raw]

    def shape(self, at: float) -> float:
        """What the time of the day and the week does to all rates, about 1 on average."""
        week = (5 + 2 * self.weekend) / 7
        weekend = self.weekend if (at // DAY) % 7 >= 5 else 1.0
        return (1 + self.day * math.sin(2 * math.pi * (at / DAY - 0.375))) * weekend / week

    def changes(self, rng: random.Random, days: float) -> list[list[float]]:
        """When each forum changes, from `HISTORY_S` before 0 on."""
        return [_stream(rng, rate, self, days * DAY) for rate in self.rates()]


def _stream(rng: random.Random, rate: float, workload: Workload, end: float) -> list[float]:
    if rate <= 0:
        return []
    own = rate * (1 - BURST_SHARE) if workload.bursts else rate
    found = _thinned(rng, own, workload.shape, (1 + workload.day) * 1.4, -HISTORY_S, end)
    waiting = list(found) if workload.bursts else []
    while waiting:  # each change has answers, and they have some in turn
        at = waiting.pop()
        for _ in range(_poisson(rng, BURST_SHARE)):
            answer = at + rng.expovariate(1 / BURST_S)
            if answer < end:
                found.append(answer)
                waiting.append(answer)
    return sorted(found)


def _thinned(
    rng: random.Random, rate: float, shape: Callable[[float], float], peak: float, start: float, end: float
) -> list[float]:
    """A Poisson process of rate `rate * shape(t)` (Lewis and Shedler 1979)."""
    found, at = [], start
    while (at := at + rng.expovariate(rate * peak)) < end:
        if rng.random() * peak < shape(at):
            found.append(at)
    return found


def _poisson(rng: random.Random, mean: float) -> int:
    limit, number, product = math.exp(-mean), 0, rng.random()
    while product > limit:
        number, product = number + 1, product * rng.random()
    return number


WORKLOADS = (
    Workload(name="even, Poisson", skew=0.0, load=0.3),
    Workload(name="power law, Poisson", skew=1.5, load=0.3),
    Workload(name="power law, day and night", skew=1.5, load=0.3, day=0.9),
    Workload(name="power law, bursts", skew=1.5, load=0.3, bursts=True),
    Workload(
        name="as recorded: power law, day, week, bursts, silent boards",
        skew=1.5,
        load=0.3,
        day=0.8,
        bursts=True,
        weekend=0.6,
        silent=0.15,
    ),
    Workload(name="power law, a change for each scan", skew=1.5, load=1.0, day=0.8, bursts=True),
    Workload(name="power law, three changes for each scan", skew=1.5, load=3.0, day=0.8, bursts=True),
)
