"""The time at which a process that wants to leave may go. Pure: every method takes the time."""

from __future__ import annotations

import math


class Farewell:
    """Waits until the last entries are safe: with an append-only file a Redis that crashes loses its last second, with a replica
    that takes over the entries that it had not received yet, and no process would be left to send them again. So a process stays
    for a window of time after its last entries were confirmed.
    """

    def __init__(self, window_s: float) -> None:
        self._window_s = window_s
        self._survives: bool | None = None
        self._last_carried = -math.inf

    @property
    def asks(self) -> bool:
        """It matters if Redis's data survives a crash, and is not known yet. Where Redis does not report it, it does."""
        return self._window_s > 0 and self._survives is None

    def answered(self, now: float, *, carried: bool, survives: bool | None) -> None:
        """Note the answer of an exchange that `carried` entries, or none; `survives`: as in `reply.Reply`."""
        if carried:
            self._last_carried = now
        if survives is not None:
            self._survives = survives

    def may_go(self, now: float, *, carries: bool) -> bool:
        """Return True if the exchange that is made now, and `carries` entries or none, may be the last one."""
        return not self._stays or (not carries and now >= self._last_carried + self._window_s)

    def due(self, soonest: float) -> float:
        """Return the time to leave, when there is nothing else to send."""
        return max(soonest, self._last_carried + self._window_s) if self._stays else soonest

    @property
    def _stays(self) -> bool:
        return self._window_s > 0 and self._survives is not False
