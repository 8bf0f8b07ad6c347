"""When a process that wants to leave may go. Pure: it is told the time."""

from __future__ import annotations

import math


class Farewell:
    """What was said last must be safe: with an append-only file a Redis that crashes loses its last second, with a replica that
    takes over what that one had not got yet, and nobody would be left to say it again. So a process stays for a window of time
    after its last word was answered.
    """

    def __init__(self, window_s: float) -> None:
        self._window_s = window_s
        self._survives: bool | None = None
        self._last_word = -math.inf

    @property
    def asks(self) -> bool:
        """It matters whether what Redis holds survives a crash, and is not known yet. Where Redis does not say, it does."""
        return self._window_s > 0 and self._survives is None

    def answered(self, now: float, *, told: bool, survives: bool | None) -> None:
        """An exchange that `told` something, or nothing, was answered; `survives`: as in `exchange.Reply`."""
        if told:
            self._last_word = now
        if survives is not None:
            self._survives = survives

    def may_go(self, now: float, *, tells: bool) -> bool:
        """Whether the exchange that is made now, and `tells` something or nothing, may be the last one."""
        return not self._stays or (not tells and now >= self._last_word + self._window_s)

    def due(self, soonest: float) -> float:
        """Time of the good-bye, when there is nothing else to tell."""
        return max(soonest, self._last_word + self._window_s) if self._stays else soonest

    @property
    def _stays(self) -> bool:
        return self._window_s > 0 and self._survives is not False
