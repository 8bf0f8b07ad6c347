"""Sleeping between two looks, and noticing that the whole process stood still meanwhile: SIGSTOP, a paused machine."""

from __future__ import annotations

import time

FROZEN_S = 1.0  # a look that comes so much too late: nobody who was looked at is to blame


def sleep(seconds: float) -> float:
    """Sleep; returns for how many seconds this process stood still beyond that, 0.0 where it did not."""
    began = time.monotonic()
    time.sleep(seconds)
    late_s = time.monotonic() - began - seconds
    return late_s if late_s > FROZEN_S else 0.0
