"""Downloader middleware for sites that complain: `Retry-After`, the limits in headers, and answers slower than usual.

Headers: `RateLimit-*` and `X-RateLimit-*`. `SitePulse` measures the rate at which one
process sends requests to a site; it and the parsers are pure and take the time. How long a site without `Retry-After` is left
alone is decided in `lua/lib/pacing.lua`.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections import OrderedDict, deque
from typing import TYPE_CHECKING

from scrapy.exceptions import DownloadFailedError, DownloadTimeoutError, ResponseDataLossError
from scrapy.utils.httpobj import urlparse_cached

from redis_components.politeness.limits import LONGEST_S, http_date, load_suffixes, needs_suffixes, retry_after_s

from .engine import ForCrawler, known_frontier, lane_of
from .internals import NotNow
from .page_tracker import tracker_of

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Headers, Response

    from redis_components.frontier.frontier import Frontier


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
        self.ended(now)
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

    def ended(self, now: float) -> None:
        """Note that a request has ended, with an answer or without one."""
        self._times.append(now)
        if (rate := len(self._times) / max(now - self._times[0], 1.0)) >= self._faded(now):
            self._best, self._best_at = rate, now

    def rate(self, now: float) -> float:
        """Return the requests per second, by the best of the last minutes; older ones count less."""
        return max(self._faded(now), _LOWEST_RATE)

    def _faded(self, now: float) -> float:
        return self._best / (1.0 + max(0.0, now - self._best_at) / _FADES_S)


_PREFIXES = ("RateLimit-", "X-RateLimit-", "X-Rate-Limit-")
_NUMBER = re.compile(r"\d{1,13}(?:\.\d{1,6})?")
_EPOCH, _EPOCH_MS = 1_000_000_000, 100_000_000_000  # a reset beyond it is a time and not a number of seconds
_LONG = 1024


def used_up_s(headers: Headers, now: float | None = None) -> float | None:
    """Return the seconds for which the site's limit is used up, between one second and a day; None where it is not, or where no
    header can be read. A time is read by the site's own clock, where it sends the header `Date`.
    """
    if b"Rate" not in b" ".join(headers):  # their names are in title case; most sites send none of these
        return None
    waits = []
    for prefix in _PREFIXES:
        remaining, reset = (_number(_text(headers, prefix + name)) for name in ("Remaining", "Reset"))
        if remaining is not None and remaining < 1 and reset is not None:
            clock = http_date(_text(headers, "Date")) or (time.time() if now is None else now)
            reset = reset / 1000 if reset > _EPOCH_MS else reset
            waits.append(reset - clock if reset > _EPOCH else reset)
    return min(max(*waits, 1.0), LONGEST_S) if waits else None


def _text(headers: Headers, name: str) -> str:
    return (headers.get(name) or b"")[:_LONG].decode("latin-1").lower()


def _number(text: str) -> float | None:
    found = _NUMBER.fullmatch(text.strip())
    return float(found[0]) if found else None


MOST_SITES = 1000
"""Of which a process knows how fast they answer."""
_COMPLAINTS = (DownloadTimeoutError, DownloadFailedError, ResponseDataLossError, ConnectionResetError)
logger = logging.getLogger(__name__)


class RetryAfterMiddleware(ForCrawler):
    """Downloader middleware, outside of decompression and inside of Scrapy's RetryMiddleware.

    Also lets all crawlers send less to a site that complains: by 429 and 503, by answers that do not come in time or break off,
    or take far longer than before. `RateLimit-*` headers without a remaining request stop the site as 429 does.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._pulses: OrderedDict[str, SitePulse] = OrderedDict()
        self._is_prepared = False

    def process_response(self, request: Request, response: Response) -> Response:
        """Give the request back where it has to wait. Raises NotNow where it waits in the frontier."""
        if not self._is_prepared and needs_suffixes(request.meta, request.url):
            self._is_prepared = True
            threading.Thread(target=load_suffixes, name="trawl-suffixes", daemon=True).start()
        pulse = self._pulse(request)
        is_slow = pulse.answered(time.monotonic(), float(request.meta.get("download_latency", 0.0)))
        refused, used_up = response.status in (429, 503), used_up_s(response.headers)
        is_often = pulse.refused(refused)
        if not (refused or is_slow or used_up is not None):
            return response
        frontier, lane = known_frontier(self._crawler), lane_of(self._crawler, request, or_default=True)
        if frontier is None or not lane or (book := tracker_of(self._crawler)) is None:  # another scheduler than ours
            return response
        rate = pulse.rate(time.monotonic())
        asked_s = retry_after_s(_text(response.headers, "Retry-After"), _text(response.headers, "Date")) or used_up
        if response.status == 503 and asked_s is None:
            is_slow = True
        elif refused or used_up is not None:
            # A site that gives a time gets what it asked for; one that gives none, or refuses often, is also sent fewer requests.
            single = bool(asked_s) and not is_often
            self._leave_alone(frontier, lane, response.status, asked_s or 0.0, rate if refused else 0.0, single=single)
            if refused and book.put_off(request, sent=True):
                raise NotNow(f"{lane} asks to be left alone")
            return response
        if is_slow:
            self._slow_down(frontier, lane, rate)
        return response

    def process_exception(self, request: Request, exception: Exception) -> None:
        """Slow the site down after an answer that did not come in time, or broke off."""
        if not isinstance(exception, _COMPLAINTS):
            return
        pulse, now = self._pulse(request), time.monotonic()
        pulse.ended(now)
        if (frontier := known_frontier(self._crawler)) is not None and (lane := lane_of(self._crawler, request, or_default=True)):
            self._slow_down(frontier, lane, pulse.rate(now))

    def _leave_alone(self, frontier: Frontier, lane: str, status: int, asked_s: float, rate: float, *, single: bool) -> None:
        for_how_long = f"{asked_s:g} s" if asked_s else "the next while"
        logger.info("HTTP %d: %s is left alone for %s", status, lane, for_how_long)
        frontier.wait(lane, asked_s, rate=rate, single=single)
        self._count(f"scheduler/left_alone/{status}")

    def _slow_down(self, frontier: Frontier, lane: str, rate: float) -> None:
        frontier.slow_down(lane, rate)
        self._count("scheduler/slowed_down")

    def _pulse(self, request: Request) -> SitePulse:
        netloc = urlparse_cached(request).netloc
        if (pulse := self._pulses.get(netloc)) is None:
            pulse = self._pulses[netloc] = SitePulse()
            if len(self._pulses) > MOST_SITES:
                self._pulses.popitem(last=False)
        return pulse
