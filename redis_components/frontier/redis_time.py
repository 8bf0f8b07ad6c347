"""When Redis decided, by the clock of this process. Pure: told the times."""

from __future__ import annotations


class RedisTime:
    """How far the two clocks are apart: by the answer that took the shortest way back, within what the present exchange proves.

    The difference lies between the moment at which an exchange was sent and the one at which its answer was read (NTP has the
    same bounds). A busy event loop reads late, so the smallest difference seen counts; a Redis whose clock is set, or another
    Redis, shows as a difference that the present exchange rules out.
    """

    def __init__(self) -> None:
        self._apart: float | None = None

    def here(self, redis_ms: int, sent: float, received: float) -> float:
        """The time of this process's clock (s) at which that of Redis showed `redis_ms`, in an exchange between the two times."""
        redis_s = redis_ms / 1000
        least, most = sent - redis_s, received - redis_s
        self._apart = most if self._apart is None else min(max(self._apart, least), most)
        return redis_s + self._apart
