"""Checks of threads for edits that no list shows: policies at equal requests, simulated.

    python -m benchmarks.forums.rechecks [--threads 400] [--requests 80] [--seed 1]

Threads with a power law of replies, which come at the rate 1/age, as edits do (or soon, or at any time: three workloads). One
post in ten is edited once. Each new reply is read when it comes, and with it the last page of its thread; all else is noticed by
checks, which read the whole thread, for as long as a month after the last post. Each policy is scaled so that it needs the same
number of requests for each thread on average. What counts is the mean time from an edit to the next reading of its page.
"""

from __future__ import annotations

import math
import random
import sys
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import mean, median

from benchmarks.support.report import Report, options
from forums.freshness import next_check

HOUR, DAY = 3600.0, 86_400.0
FIRST_S, LAST_S = 60.0, 30 * DAY  # after what they answer or change, replies and edits come between these
PER_PAGE = 20
EDITED = 0.1
_STEPS = 12  # of the bisection of a policy's scale

Wait = Callable[[float, float, int, float], float]
"""Seconds to the next check: age of the thread, age of its newest post, requests of a check, the policy's scale."""


@dataclass(frozen=True, kw_only=True)
class Thread:
    """`posts` when each was written (s, the first at 0), `edits` when which post was changed."""

    posts: Sequence[float]
    edits: Sequence[tuple[float, int]]


def _trawl(_age_s: float, newest_s: float, requests: int, scale: float) -> float:
    wait = next_check(newest_s, recheck_s=math.inf, min_interval_s=scale, requests=requests)
    assert wait is not None
    return wait


POLICIES: dict[str, Wait] = {
    "power of the age, root of the cost (Trawl)": _trawl,
    "when twice as old since its newest post": lambda _age, newest, _requests, scale: scale * max(newest, 600.0),
    "when twice as old": lambda age, _newest, _requests, scale: scale * max(age, 600.0),
    "all at the same interval": lambda _age, _newest, _requests, scale: scale * HOUR,
}

EDITS: dict[str, Callable[[random.Random], float]] = {  # how long after its post an edit comes
    "at the rate 1/age": lambda rng: _by_age(rng),
    "soon: two hours on average": lambda rng: rng.expovariate(1 / (2 * HOUR)),
    "at any time of the month": lambda rng: rng.uniform(0, LAST_S),
}


def threads(rng: random.Random, number: int, edit_after: Callable[[random.Random], float]) -> list[Thread]:
    """So many threads."""
    found = []
    for _ in range(number):
        replies = min(round(8 * (rng.paretovariate(1.6) - 1)), 400)
        posts = sorted([0.0, *(_by_age(rng) for _ in range(replies))])
        edits = [(at + edit_after(rng), place) for place, at in enumerate(posts) if rng.random() < EDITED]
        found.append(Thread(posts=posts, edits=edits))
    return found


def measure(found: Sequence[Thread], wait: Wait, scale: float) -> tuple[list[float], float]:
    """Delays of the edits, and requests of checks per thread."""
    delays: list[float] = []
    requests = 0
    for thread in found:
        checks, spent = _checks(thread, wait, scale)
        requests += spent
        for at, place in thread.edits:
            seen = checks[bisect_left(checks, at)] if at <= checks[-1] else math.inf
            again = bisect_left(thread.posts, at)  # a reply is read with its page
            if again < len(thread.posts) and (again - 1) // PER_PAGE == place // PER_PAGE:
                seen = min(seen, thread.posts[again])
            if seen < math.inf:
                delays.append(seen - at)
    return delays, requests / len(found)


def _checks(thread: Thread, wait: Wait, scale: float) -> tuple[list[float], int]:
    """Return the times of checks of a thread, the last a month after its last post, and the requests for them."""
    checks: list[float] = []
    requests, at, end = 0, 0.0, thread.posts[-1] + LAST_S
    while at < end:
        known = bisect_left(thread.posts, at + 1e-6)
        cost = 1 + math.ceil(known / PER_PAGE)
        due = at + max(wait(at, at - thread.posts[known - 1], cost, scale), 1.0)
        if known < len(thread.posts) and thread.posts[known] < due:
            at = thread.posts[known]  # a reply: it is read, and the next check follows from that
            continue
        at = due
        checks.append(min(at, end))
        requests += cost
    return checks, requests


def fitted(found: Sequence[Thread], wait: Wait, requests: float) -> list[float]:
    """Return the delays under a policy that is scaled to so many requests per thread."""
    low, high = math.log(1e-3), math.log(1e4)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if measure(found, wait, math.exp(middle))[1] < requests else (middle, high)
    return measure(found, wait, math.exp(high))[0]


def _by_age(rng: random.Random) -> float:
    return FIRST_S * (LAST_S / FIRST_S) ** rng.random()


def main() -> int:
    """Simulate and print the report; exit code 1 if Trawl's policy is not the best where edits come as it assumes."""
    parser = options(__doc__)
    parser.add_argument("--threads", type=int, default=400, help="threads (default: %(default)s)")
    parser.add_argument("--requests", type=float, default=80.0, help="for the checks of each (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="(default: %(default)s)")
    chosen = parser.parse_args()
    report = Report(title="When to check a thread for edits", method=" ".join((__doc__ or "").split("\n\n", 2)[2].split()))
    rows = []
    for workload, edit_after in EDITS.items():
        found = threads(random.Random(chosen.seed), chosen.threads, edit_after)
        delays = {name: fitted(found, wait, chosen.requests) for name, wait in POLICIES.items()}
        rows += [[workload, name, mean(late) / HOUR, median(late) / HOUR] for name, late in delays.items()]
        report.figures[workload] = {name: mean(late) for name, late in delays.items()}
    report.table(["edits", "policy", "mean delay, h", "median, h"], rows)
    means = report.figures["at the rate 1/age"]
    report.target("the least mean delay where edits come at the rate 1/age", min(means, key=means.get) == next(iter(POLICIES)))
    report.finish(chosen)
    return int(not all(reached for _, reached in report.targets))


if __name__ == "__main__":
    sys.exit(main())
