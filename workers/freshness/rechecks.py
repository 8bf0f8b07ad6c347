"""When a thread is looked at again for edits and deletions that its list page does not show."""

from __future__ import annotations

SHORTEST = 20  # times the site's min_interval_s: the first check of a new thread
LONGEST_S = 7 * 86_400.0


def next_check(age_s: float, changes: int = 0, *, recheck_s: float, min_interval_s: float = 30.0) -> float | None:
    """Seconds until a thread's next check; None where it is old enough to be left alone.

    `age_s` is the time since its last post or comment, `changes` how many edits and deletions this check (or this month's checks)
    found in it, `recheck_s` the age up to which the site wants checks, `min_interval_s` the site's shortest interval.

    Edits and deletions come soon after a post or not at all: their rate falls about like 1/age, so each check waits as long as
    the thread is old, and a thread of 30 days costs about ten checks. Each change that was found halves the wait.
    """
    if age_s > recheck_s:
        return None
    wait: float = min(max(age_s * 0.5 ** min(changes, 8), SHORTEST * min_interval_s), LONGEST_S)
    return wait
