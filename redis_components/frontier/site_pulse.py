"""How often one process asks a site, and whether its answers take longer than they did. Pure: told the time."""

from __future__ import annotations

from collections import deque

WINDOW = 64
"""Last answers by which the rate is known."""
LEAST_ANSWERS = 20
"""Before so many nothing is said of how long they take."""
SLOW_S, TIMES = 1.5, 3.0
"""An answer is slow that takes longer than this, and so many times longer than most of the site's."""
_RECENT, _USUAL = 0.3, 0.02  # weights of one answer in the means
_LOWEST_RATE = 0.1


class SitePulse:
    """What one process sees of one site."""

    def __init__(self) -> None:
        self._times: deque[float] = deque(maxlen=WINDOW)
        self._answers = 0
        self._recent_s = 0.0
        self._usual_s = 0.0

    def answered(self, now: float, latency_s: float) -> bool:
        """Note an answer; whether the last ones were far slower than usual. A site that stays slow becomes the usual one."""
        self._times.append(now)
        self._answers += 1
        if self._answers == 1:
            self._recent_s = self._usual_s = latency_s
        self._recent_s += _RECENT * (latency_s - self._recent_s)
        self._usual_s += max(_USUAL, 1 / self._answers) * (latency_s - self._usual_s)
        return self._answers >= LEAST_ANSWERS and self._recent_s > max(SLOW_S, TIMES * self._usual_s)

    def failed(self, now: float) -> None:
        """Note that an answer did not come."""
        self._times.append(now)

    def rate(self, now: float) -> float:
        """Requests per second, by the last ones that have ended."""
        since = self._times[0] if self._times else now
        return max(len(self._times) / max(now - since, 1.0), _LOWEST_RATE)
