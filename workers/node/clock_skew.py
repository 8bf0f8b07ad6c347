"""Compares a machine's clock with Redis's.

All times of the fleet are Redis's, but one: a message expires by its sender's clock, and Celery compares that with the clock of
the worker that takes it. A worker whose clock is ahead throws away all that beat sends, and logs no more than "Discarding".
"""

from __future__ import annotations

TOLERATED_S = 3.0  # messages of the fleet are good for 10 s


def off_by(redis_s: float, asked_s: float, answered_s: float) -> float:
    """Return the seconds that our clock is ahead of Redis's (negative: behind), 0 where they may agree.

    `redis_s` is the time that Redis gave in an answer, the others when we asked and had the answer, by our clock; epoch s.
    """
    if asked_s - redis_s > TOLERATED_S:
        return asked_s - redis_s
    return answered_s - redis_s if redis_s - answered_s > TOLERATED_S else 0.0


def complaint(off_s: float) -> str:
    """Describe the difference and the fix, for the operator; `off_s` is not 0."""
    if off_s > 0:
        return f"its clock is {off_s:.0f} s ahead of Redis's: messages have expired when it takes them; set the clock (NTP)"
    return f"its clock is {-off_s:.0f} s behind Redis's: what it sends has expired on arrival; set the clock (NTP)"
