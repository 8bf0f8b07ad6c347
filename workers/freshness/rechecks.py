"""When a thread is looked at again for edits and deletions that its list page does not show.

Edits and deletions come soon after something was written, or not at all: in a thread whose newest post is `a` seconds old they
come at the rate `h(a) = c / a`. What was changed `s` seconds after a reading waits `T - s` where the next one is `T` seconds
after it, so a reading saves the area over the curve of what is expected to have changed, the integral of `s h(a + s) ds` from 0
to `T`. The thread whose area has grown most for each request is read first: the priority of Olston and Widom (Best-effort
cache synchronization with source cooperation, SIGMOD 2002). Olston and Pandey (Recrawl scheduling based on information
longevity, WWW 2008) find that the age of what is on a page tells what will change, rather than the page's. Where the rate is
constant that is the square-root rule of the forums, `T = K sqrt(cost / h)`; here `T` grows about like the root of the age.

A law `1/a` has no scale: it is the same for a board that lives by the minute and for one that lives by the day.
"""

from __future__ import annotations

import math

SPARING = 10.0
"""A thread is not checked more often than in the geometric mean of so many times the site's `min_interval_s` and the time between
two of its changes, however large the budget is."""
LONGEST_S = 7 * 86_400.0
CHANGES_PER_FOLD = 0.1  # edits and deletions in a thread while its age grows by the factor e: one thread in ten
EACH_FOUND = 2.0  # a change that was found in a thread counts like so many that were expected
_STEPS = 40  # of the bisection; each halves the error


def next_check(
    age_s: float, changes: int = 0, *, recheck_s: float, min_interval_s: float = 30.0, requests: int = 2
) -> float | None:
    """Seconds until a thread's next check; None where it is old enough to be left alone.

    `age_s` is the time since its last post or comment, `changes` how many edits and deletions this reading found in it,
    `recheck_s` the age up to which the site wants checks, `min_interval_s` the site's shortest interval, `requests` what a
    check costs. At the defaults the first check is after an hour, those of a thread of a day seven hours apart.
    """
    if age_s > recheck_s:
        return None
    soonest = SPARING * min_interval_s
    rate = CHANGES_PER_FOLD * (1 + EACH_FOUND * changes)
    wait = _until(soonest * max(1, requests) / (2 * rate), age_s + soonest)
    return min(max(wait, soonest), LONGEST_S)


def _until(area: float, age_s: float) -> float:
    """T such that `T - age ln(1 + T / age)`, the area for c = 1, is `area`."""
    low, high = 0.0, area + 2 * math.sqrt(area * age_s) + age_s
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if middle - age_s * math.log1p(middle / age_s) < area else (low, middle)
    return high
