"""Shares one reading of Redis between many requests: at most one reading a second, and one at a time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

MAX_AGE_S = 1.0

T = TypeVar("T")


class CachedOverview(Generic[T]):
    """Calls `look` when its result is older than `max_age_s`; concurrent callers wait and share one result."""

    def __init__(
        self, look: Callable[[], T], *, max_age_s: float = MAX_AGE_S, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._look = look
        self._max_age_s = max_age_s
        self._clock = clock
        self._lock = threading.Lock()
        self._seen: tuple[T, float] | None = None

    def __call__(self) -> T:
        """Return the last result, at most `max_age_s` old. Raises the exceptions of `look`, which are not kept."""
        with self._lock:
            if self._seen is None or self._clock() - self._seen[1] >= self._max_age_s:
                self._seen = (self._look(), self._clock())  # when it was there: a slow look is not old at once
            return self._seen[0]
