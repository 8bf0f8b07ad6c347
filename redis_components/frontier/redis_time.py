"""The times of Redis by the clock of this process, and the present time by Redis's."""

from __future__ import annotations

import time


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
