"""Requests of lanes, each leased to be sent at its time, so that all processes together keep a rate. Pure: told the time."""

from __future__ import annotations

import heapq
import math

from .messages import Lease

LATE_S = 0.1
"""A request that could not be started so long after its time is given back: later it would meet those of other processes."""


class TimedLeases:
    """In the order of their times (s of the clock)."""

    def __init__(self) -> None:
        self.heap: list[tuple[float, Lease, float]] = []
        """Time, lease, time from which it is too late; open to the frontier, which looks for each page whether there is any."""

    def __len__(self) -> int:
        return len(self.heap)

    def add(self, now: float, wait_s: float | None, lease: Lease) -> None:
        """To be sent `wait_s` from `now`; None: at any time from now on."""
        at = now + (wait_s or 0.0)
        heapq.heappush(self.heap, (at, lease, math.inf if wait_s is None else at + LATE_S))

    def next_change(self, now: float) -> float | None:
        """When the next one may be sent, or one is too late; None where neither will be."""
        times = (at if at > now else until for at, _, until in self.heap)
        return min((time for time in times if time > now and time < math.inf), default=None)

    def is_due(self, now: float) -> bool:
        """Whether one may be sent now."""
        return bool(self.heap) and self.heap[0][0] <= now

    def take(self, now: float) -> tuple[Lease | None, list[Lease]]:
        """The next one that may be sent now, or None; and those before it that are too late."""
        late = self.take_late(now)
        if self.heap and self.heap[0][0] <= now:
            return heapq.heappop(self.heap)[1], late
        return None, late

    def take_late(self, now: float) -> list[Lease]:
        """Remove and return those that are too late."""
        late = [lease for _, lease, until in self.heap if until <= now]
        if late:
            self.heap = [entry for entry in self.heap if entry[2] > now]
            heapq.heapify(self.heap)
        return late

    def drain(self) -> list[Lease]:
        """Remove and return all."""
        leases, self.heap = [entry[1] for entry in self.heap], []
        return leases

    @property
    def ids(self) -> list[str]:
        """Of all that wait."""
        return [lease.id for _, lease, _ in self.heap]
