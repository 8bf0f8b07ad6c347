"""The rate at which one process sends requests to a site, and a check for slower answers. Pure: every method takes the time."""

from __future__ import annotations

from collections import deque

LEAST_ANSWERS = 20
"""With fewer answers their times are not judged."""
SLOW_S, TIMES = 1.5, 3.0
"""An answer is slow that takes longer than this, and so many times longer than most of the site's."""
_RECENT, _USUAL = 0.3, 0.02  # weights of one answer in the means
_LOWEST_RATE = 0.1
BURST = 64
"""Answers in a row, of which the rate is taken: a site that was asked little lately did not complain of that little."""
_FADES_S = 120.0
OFTEN = 2
"""Refusals among the last BURST answers that are more than a chance."""


class SitePulse:
    """Measurements of one process at one site."""

    def __init__(self) -> None:
        self._times: deque[float] = deque(maxlen=BURST)
        self._best, self._best_at = 0.0, 0.0
        self._refused: deque[bool] = deque(maxlen=BURST)
        self._answers = 0
        self._recent_s = 0.0
        self._usual_s = 0.0

    def answered(self, now: float, latency_s: float) -> bool:
        """Note an answer; whether the last ones were far slower than usual. A site that stays slow becomes the usual one."""
        self._ended(now)
        self._answers += 1
        if self._answers == 1:
            self._recent_s = self._usual_s = latency_s
        self._recent_s += _RECENT * (latency_s - self._recent_s)
        self._usual_s += max(_USUAL, 1 / self._answers) * (latency_s - self._usual_s)
        return self._answers >= LEAST_ANSWERS and self._recent_s > max(SLOW_S, TIMES * self._usual_s)

    def refused(self, is_refusal: bool) -> bool:
        """Note if the last answer was a refusal; return True if the site refuses often."""
        self._refused.append(is_refusal)
        return is_refusal and sum(self._refused) >= OFTEN

    def failed(self, now: float) -> None:
        """Note that an answer did not come."""
        self._ended(now)

    def _ended(self, now: float) -> None:
        """Note that a request has ended, either way."""
        self._times.append(now)
        if (rate := len(self._times) / max(now - self._times[0], 1.0)) >= self._faded(now):
            self._best, self._best_at = rate, now

    def rate(self, now: float) -> float:
        """Return the requests per second, by the best of the last minutes; older ones count less."""
        return max(self._faded(now), _LOWEST_RATE)

    def _faded(self, now: float) -> float:
        return self._best / (1.0 + max(0.0, now - self._best_at) / _FADES_S)
