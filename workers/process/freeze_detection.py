"""Sleeps, and detects that the whole process was frozen meanwhile: by SIGSTOP, or a paused machine."""

from __future__ import annotations

import time
from collections.abc import Callable

FROZEN_S = 1.0  # if our own loop was late by more than this, we were frozen; do not blame the child


def sleep(seconds: float, wait: Callable[[float], object] = time.sleep) -> float:
    """Sleep by `wait`, which may end early; returns for how many more seconds this process was frozen, 0.0 if it was not."""
    began = time.monotonic()
    wait(seconds)
    late_s = time.monotonic() - began - seconds
    return late_s if late_s > FROZEN_S else 0.0
