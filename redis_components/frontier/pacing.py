"""The times of exchanges, and the number of requests to lease ahead. Pure: every method takes the time."""

from __future__ import annotations

import math
from enum import Enum

from .config import FrontierConfig

FASTEST_POLL_S = 0.01
CLOSEST_S = 0.001
"""Between any two exchanges: a process that is woken again and again for work it does not get must not spin."""


REST = 0.02
"""Share of the time without work after which to look again: work that comes is found late by 2 % of the wait for it."""

LONGEST_REST_S = 0.5
"""Most of that: an idle process polls Redis twice a second."""

LONGEST_SILENCE_S = 1.0
"""An exchange brings the operator's holds to this process, and these shall take effect within 2 s."""


class Haste(Enum):
    """The reason for the next exchange, the most urgent first."""

    NOW = "its answer is waited for"
    GATHERED = "there is something to send, or to fetch"
    POLL = "there may be something to fetch"
    BEAT = "this process is alive"


class Pace:
    """Measurements of this process and its Redis, and the pace that follows from them."""

    def __init__(self, config: FrontierConfig, now: float) -> None:
        self._config = config
        self.taken = 0
        """Requests started since the last measurement; counted by the frontier."""
        self.refill_at = 0
        """Buffered requests at which more are leased."""
        self.last = -math.inf
        """Time of the last exchange."""
        self._measured = now
        self._rate = 0.0
        self._round_trip_s = 0.005
        self._poll_s = FASTEST_POLL_S
        self._got_at = now
        self._aim()

    def begin(self, now: float) -> None:
        """Note the beginning of an exchange."""
        self.last = now
        elapsed_s = now - self._measured
        if elapsed_s >= 0.1:
            self._rate += 0.3 * (self.taken / elapsed_s - self._rate)
            self.taken, self._measured = 0, now
            self._aim()

    def answered(self, now: float, *, got: bool, lanes: bool = False) -> None:
        """Note that it was answered at its first try; `got`: it brought leases; `lanes`: requests wait for their turns."""
        self._round_trip_s += 0.2 * (now - self.last - self._round_trip_s)
        if got:
            self._poll_s, self._got_at = FASTEST_POLL_S, now
        else:
            rest_s = 0.0 if lanes else min(LONGEST_REST_S, REST * (now - self._got_at))
            slowest_s = max(self._config.slowest_poll_s, rest_s)
            self._poll_s = min(slowest_s, self._poll_s * 1.5)
        self._aim()

    def _aim(self) -> None:
        """Hold the requests of a few round trips, and refill at half of them."""
        config = self._config
        horizon_s = 3 * (self._round_trip_s + config.interval_s)
        self._target = min(config.max_prefetch, max(config.concurrency, math.ceil(self._rate * horizon_s)))
        self.refill_at = self._target // 2

    def want(self, held: int, overtaking: int) -> int:
        """Return the requests to lease when `held` are buffered and `overtaking` new ones come before all of them: these are
        leased at once, held or not, but not so many that the buffer would grow with each exchange.
        """
        refill = self._target - held if held <= self.refill_at else 0
        if not overtaking:
            return refill
        most = min(self._config.max_prefetch, self._target + self._config.concurrency)
        return max(refill, min(overtaking, self._config.concurrency, most - held))

    def due(self, haste: Haste) -> float:
        """Return the time of the next exchange."""
        match haste:
            case Haste.NOW:
                wait_s = CLOSEST_S
            case Haste.GATHERED:
                wait_s = self._config.interval_s
            case Haste.POLL:
                wait_s = self._poll_s
            case Haste.BEAT:
                wait_s = min(LONGEST_SILENCE_S, self._config.beat_s)
        return self.last + wait_s
