"""One call to come, at the soonest time that was asked for."""

from __future__ import annotations

import math
from collections.abc import Callable

from .transport import Clock


class Timer:
    """Calls `ring` once for any number of wishes, at the soonest of their times."""

    def __init__(self, clock: Clock, ring: Callable[[], None]) -> None:
        self._clock = clock
        self._ring = ring
        self._due = math.inf
        self._cancel: Callable[[], None] | None = None

    def set(self, due: float, now: float) -> None:
        """Ring at `due` (s of the clock, at which it is `now`), unless it rings before."""
        if self._cancel is not None:
            if due >= self._due:
                return
            self._cancel()
        self._due = due
        self._cancel = self._clock.call_later(due - now, self._rings)

    def cancel(self) -> None:
        """Do not ring. Cancelling twice is allowed."""
        if self._cancel is not None:
            self._cancel()
            self._cancel = None

    def _rings(self) -> None:
        self._cancel = None
        self._ring()
