"""Schedule of checks of a thread for edits and deletions that its list page does not show.

Most edits and deletions come soon after a post: their rate falls with the time since the thread's newest post, not with its
own age (Olston and Pandey, Recrawl scheduling based on information longevity, WWW 2008: the age of the content predicts
changes, not the age of the page). With the rate `h` and the cost of a check, the square-root rule of the forums gives the time
to the next check, `T = K sqrt(cost / h)`.

How fast the rate falls differs between sites, and is unknown before edits were seen. If it falls like 1/age, `T` should grow with
the root of the age; if authors edit within hours and then no more, with the age itself. A power between them is near the best of
both (`benchmarks/forums/rechecks.py`).
"""

from __future__ import annotations

import math

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
