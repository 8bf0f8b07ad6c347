"""When a thread is looked at again for edits and deletions that its list page does not show.

Edits and deletions come soon after something was written, or not at all: the rate at which they come falls with the time since
the thread's newest post, not on its own age (Olston and Pandey, Recrawl scheduling based on information longevity, WWW 2008:
the age of what is on a page tells what will change, rather than the page's). With the rate `h` and what a check costs, the
square-root rule of the forums gives the time to the next check, `T = K sqrt(cost / h)`.

How fast the rate falls differs between sites, and is not known before edits were seen. Where it falls like 1/age, `T` had better
grow with the root of the age; where authors edit within hours and then no more, with the age itself. A power between them is near
the best of both (`benchmarks/forums/rechecks.py`).
"""

from __future__ import annotations

import math

SOONEST = 20
"""Times the site's `min_interval_s`: no check comes sooner, and up to this age a thread counts as new."""
POWER = 0.65  # of the age: T grows like it
SPARING = 2.0  # T is longer by this: a month costs a short thread about 27 checks, however large the budget is
EACH_FOUND = 2.0  # a change that was found in a thread counts like so many that were expected
LONGEST_S = 7 * 86_400.0


def next_check(
    age_s: float, changes: int = 0, *, recheck_s: float, min_interval_s: float = 30.0, requests: int = 2
) -> float | None:
    """Seconds until a thread's next check; None where it is old enough to be left alone.

    `age_s` is the time since its last post or comment, `changes` how many edits and deletions this reading found in it,
    `recheck_s` the age up to which the site wants checks, `min_interval_s` the site's shortest interval, `requests` what a
    check costs.
    """
    if age_s > recheck_s:
        return None
    soonest = SOONEST * min_interval_s
    cheap = math.sqrt(max(1, requests) / 2 / (1 + EACH_FOUND * changes))
    wait: float = SPARING * soonest * (1 + age_s / soonest) ** POWER * cheap
    return min(max(wait, soonest), LONGEST_S)
