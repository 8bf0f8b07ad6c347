"""Posting as forums have it: streams of changes for `benchmarks/forums/freshness.py`. Times in seconds, 0 is a midnight (UTC).

`recorded/lean_zulip.txt` is a record, not a model: when 9,284 messages of 24 days (2026-01-02 to 2026-01-25; 0 is 2026-01-12)
came in the 56 streams of a public community, and in which of a stream's threads. One line for a stream: its name, and for
each message the seconds since the one before (of the first one: its time) and a number for its thread. Source: the archive of
the Lean community's Zulip, repository leanprover-community/archive at 0774fce02825; streams without a message in the last 90
days are left out.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from pathlib import Path

HOUR, DAY = 3600.0, 86_400.0
HISTORY_S = 10 * DAY  # before the first scan: its list page shows it
BURST_SHARE = 0.6  # of the changes answer another one (branching ratio of a Hawkes process)
BURST_S = 1800.0  # their mean distance from it
RECORD = Path(__file__).with_name("recorded") / "lean_zulip.txt"
RECORDED_DAYS = 14  # from 0 on


@dataclass(frozen=True, kw_only=True)
class Stream:
    """Changes of a forum, and their threads. Without `threads` each change is another thread's."""

    at: list[float]
    threads: Sequence[int] | None = None


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
        """Return the changes a second of each forum, in the long run."""
        alive = self.forums - round(self.silent * self.forums)
        raw = [1 / (place + 1) ** self.skew if place < alive else 0.0 for place in range(self.forums)]
        return [one * self.load * self.scans_per_hour / HOUR / sum(raw) for one in raw]

    def shape(self, at: float) -> float:
        """Return the factor of all rates by the time of the day and the week, about 1 on average."""
        week = (5 + 2 * self.weekend) / 7
        weekend = self.weekend if (at // DAY) % 7 >= 5 else 1.0
        return (1 + self.day * math.sin(2 * math.pi * (at / DAY - 0.375))) * weekend / week

    def changes(self, rng: random.Random, days: float) -> list[Stream]:
        """Return the changes of each forum, from `HISTORY_S` before 0 on."""
        return [Stream(at=_times(rng, rate, self, days * DAY)) for rate in self.rates()]


@dataclass(frozen=True, kw_only=True)
class Record(Workload):
    """A recorded workload. `skew` only describes that its forums differ like those of such a power law."""

    def rates(self) -> list[float]:
        """Return the changes a second of each forum, as the mean of the simulated days."""
        return [sum(at >= 0 for at in stream.at) / (RECORDED_DAYS * DAY) for stream in _recorded()]

    def changes(self, rng: random.Random, days: float) -> list[Stream]:
        """Return the record from another moment on in each run. Raises ValueError for more days than it has."""
        if days > RECORDED_DAYS:
            raise ValueError(f"--days {days:g}: the record has {RECORDED_DAYS} days")
        start = rng.uniform(0, RECORDED_DAYS - days) * DAY
        return [Stream(at=[at - start for at in stream.at], threads=stream.threads) for stream in _recorded()]


@cache
def _recorded() -> list[Stream]:
    streams = []
    for line in RECORD.read_text().splitlines():
        pairs = [pair.split(":") for pair in line.partition("\t")[2].split()]
        streams.append(Stream(at=list(accumulate(float(gap) for gap, _ in pairs)), threads=[int(thread) for _, thread in pairs]))
    return streams


def _times(rng: random.Random, rate: float, workload: Workload, end: float) -> list[float]:
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
    """Draw a Poisson process of rate `rate * shape(t)` (Lewis and Shedler 1979)."""
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
        name="power law, day, week, bursts, silent boards",
        skew=1.5,
        load=0.3,
        day=0.8,
        bursts=True,
        weekend=0.6,
        silent=0.15,
    ),
    Record(name="recorded", skew=1.5, load=0.3, forums=56, scans_per_hour=54.0),
    Workload(name="power law, a change for each scan", skew=1.5, load=1.0, day=0.8, bursts=True),
    Workload(name="power law, three changes for each scan", skew=1.5, load=3.0, day=0.8, bursts=True),
)
