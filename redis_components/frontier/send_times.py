"""The times at which leases of sites with limits are to be sent, and Redis's clock by that of this process."""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Callable

from .messages import Lease, SendSlot


class RedisTime:
    """The difference of the two clocks: by the answer that took the shortest way back, within what the present exchange proves.

    The difference lies between the moment at which an exchange was sent and the one at which its answer was read (NTP has the
    same bounds). A busy event loop reads late, so the smallest difference seen counts; a Redis whose clock is set, or another
    Redis, shows as a difference that the present exchange rules out.
    """

    def __init__(self) -> None:
        self._apart: float | None = None

    def here(self, redis_ms: int, sent: float, received: float) -> float:
        """Return the time of this process's clock (s) at which Redis's showed `redis_ms`, in an exchange between the
        two times.
        """
        redis_s = redis_ms / 1000
        least, most = sent - redis_s, received - redis_s
        self._apart = most if self._apart is None else min(max(self._apart, least), most)
        return redis_s + self._apart


class SharedClock:
    """The time of day by Redis's clock, as far as exchanges prove that this machine's is wrong: what several machines have read
    is put in order by one clock. Where the two may agree, this machine's counts.
    """

    def __init__(self) -> None:
        self._ahead = 0.0

    def learn(self, redis_ms: int, took_s: float) -> None:
        """Learn that Redis's clock showed `redis_ms` (0: not given) in an exchange of the last `took_s` seconds."""
        if redis_ms:
            most = time.time() - redis_ms / 1000
            self._ahead = min(max(self._ahead, most - took_s), most)

    def time(self) -> float:
        """Return the seconds since the epoch, by Redis's clock."""
        return time.time() - self._ahead


shared_clock = SharedClock()
"""Of this process: all its crawls use one Redis."""


class TimedLeases:
    """In the order of their times (s of the clock)."""

    def __init__(self) -> None:
        self.heap: list[tuple[float, Lease, float]] = []
        """Time, lease, time from which it is too late; open to the frontier, which looks for each page whether there is any."""
        self.resting: dict[str, float] = {}
        """Lane -> time until which this process sends nothing of it."""
        self._closing: dict[str, float] = {}

    def __len__(self) -> int:
        return len(self.heap)

    def add(self, now: float, turn: SendSlot, lease: Lease) -> None:
        """Add a lease, to be sent at its turn, counted from `now`, the time at which Redis decided."""
        at = now + (turn.wait_s or 0.0)
        heapq.heappush(self.heap, (at, lease, at + turn.late_s))

    def close(self, lane: str, at: float) -> None:
        """Send nothing of a lane from that time on, at which its quiet hours begin."""
        self._closing[lane] = at

    def take_closed(self, now: float) -> list[Lease] | None:
        """Remove and return those of lanes whose quiet hours have begun, once for each; None where none have."""
        closed = {lane for lane, at in self._closing.items() if at <= now}
        if not closed:
            return None
        for lane in closed:
            del self._closing[lane]
        return self._remove(lambda entry: entry[1].lane in closed)

    def next_change(self, now: float) -> float | None:
        """Return the time when the next one may be sent, or one is too late, or quiet hours begin, or a rest ends; None where
        there is no such time.
        """
        times = (at if at > now else until for at, _, until in self.heap)
        soonest = min((time for time in times if time > now and time < math.inf), default=None)
        closing = min(self._closing.values(), default=None)
        rested = min(self.resting.values(), default=None)
        return min((time for time in (soonest, closing, rested) if time is not None), default=None)

    def end_rests(self, now: float) -> bool:
        """Forget the rests that are over; return True if there is any."""
        before = len(self.resting)
        self.resting = {lane: until for lane, until in self.resting.items() if until > now}
        return len(self.resting) < before

    def take_lane(self, lane: str) -> list[Lease]:
        """Remove and return those of a lane."""
        return self._remove(lambda entry: entry[1].lane == lane)

    def is_due(self, now: float) -> bool:
        """Return True if a request may be sent now."""
        return bool(self.heap) and self.heap[0][0] <= now

    def take(self, now: float) -> tuple[Lease | None, list[Lease]]:
        """Return the next request that may be sent now, or None; and those before it that are too late."""
        late = self.take_late(now)
        if self.heap and self.heap[0][0] <= now:
            _, lease, until = heapq.heappop(self.heap)
            return lease._replace(until=until), late
        return None, late

    def take_late(self, now: float) -> list[Lease]:
        """Remove and return those that are too late."""
        return self._remove(lambda entry: entry[2] <= now)

    def _remove(self, goes: Callable[[tuple[float, Lease, float]], bool]) -> list[Lease]:
        gone = [entry[1] for entry in self.heap if goes(entry)]
        if gone:
            self.heap = [entry for entry in self.heap if not goes(entry)]
            heapq.heapify(self.heap)
        return gone

    def drain(self) -> list[Lease]:
        """Remove and return all."""
        leases, self.heap = [entry[1] for entry in self.heap], []
        return leases

    @property
    def ids(self) -> list[str]:
        """Of all that wait."""
        return [lease.id for _, lease, _ in self.heap]
