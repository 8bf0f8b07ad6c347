"""The phases of a crawler process's crawl."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from enum import IntEnum

from .outbox import Batch
from .transport import Clock


class Phase(IntEnum):
    """The phases in their order; a process never goes back to an earlier one."""

    JOINING = 0
    """It stores the entries that it gets, and leases nothing."""
    LEASING = 1
    """It crawls."""
    CLOSING = 2
    """It leases nothing more and gives unstarted requests back; pages at work are stored."""
    LEAVING = 3
    """It leaves as soon as everything is stored and safe."""
    STOPPED = 4
    """It exchanges no more."""


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


class WriteJournal:
    """The batches of the exchanges answered within `keep_s` seconds."""

    def __init__(self, keep_s: float) -> None:
        self._keep_s = keep_s
        self._entries: deque[tuple[float, int, Batch]] = deque()

    def remember(self, now: float, number: int, batch: Batch) -> None:
        """Keep the writes of exchange `number`, answered at `now`; older ones than `keep_s` are forgotten."""
        if batch.writes:
            self._entries.append((now, number, batch))
        while self._entries and self._entries[0][0] < now - self._keep_s:
            self._entries.popleft()

    def replay(self, known: int, now: float, number: int, batch: Batch) -> list[Batch]:
        """Remove and return, however old (Redis may have been away for long), what a Redis lacks that knows all exchanges up to
        `known`; `batch` is that of exchange `number`, just refused at `now`. The rest is kept: Redis may come back older yet.
        """
        self._entries.append((now, number, batch))
        lacking = [one for _, of, one in self._entries if of > known and one.writes]
        self._entries = deque(entry for entry in self._entries if entry[1] <= known and entry[2].writes)
        return lacking

    def __bool__(self) -> bool:
        return bool(self._entries)


class ShutdownSequence:
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
