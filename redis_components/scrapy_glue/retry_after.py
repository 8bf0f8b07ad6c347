"""A site that answers 429 or 503 is left alone by every crawler, as long as it asks for.

    DOWNLOADER_MIDDLEWARES = {"redis_components.scrapy_glue.retry_after.RetryAfterMiddleware": 555}

The request goes back to the frontier and waits there, with all others of its lane. It spends no retry and no attempt. A 503
without `Retry-After` may be the fault of one page, so Scrapy's RetryMiddleware decides about it.
"""

from __future__ import annotations

import logging
import time
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Self

from redis_components.frontier.limits import default_lane

from .engine import known_frontier
from .internals import NotNow

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

LONGEST_S = 86_400.0
SHORTEST_S = 1.0

logger = logging.getLogger(__name__)


def retry_after_s(response: Response) -> float | None:
    """What `Retry-After` asks for, in seconds or as a date (by the site's own clock where it says the time), between a second
    and a day; None where there is none, or none that can be read.
    """
    text = (response.headers.get("Retry-After") or b"").decode("latin-1").strip()
    if text.isascii() and text.isdigit():
        return min(max(float(text[:12]), SHORTEST_S), LONGEST_S)
    at, now = http_date(text), http_date((response.headers.get("Date") or b"").decode("latin-1"))
    if at is None:
        return None
    return min(max(at - (time.time() if now is None else now), SHORTEST_S), LONGEST_S)


def http_date(text: str) -> float | None:
    """Epoch seconds of a header's date; None for what is none."""
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()


class RetryAfterMiddleware:
    """Downloader middleware, outside of decompression and inside of Scrapy's RetryMiddleware."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """The frontier is asked at the first answer that says so."""
        return cls(crawler)

    def process_response(self, request: Request, response: Response) -> Response:
        """Raises NotNow where the request waits in the frontier."""
        if response.status not in (429, 503):
            return response
        asked_s = retry_after_s(response)
        frontier = known_frontier(self._crawler)
        put_off = getattr(self._crawler.engine and self._crawler.engine.scheduler, "put_off", None)  # of our Scheduler only
        if frontier is None or put_off is None or (response.status == 503 and asked_s is None):
            return response
        lane = frontier.limits.lane_of(request.meta, request.url) or default_lane(request.meta, request.url)
        if not lane:
            return response
        for_how_long = "the next while" if asked_s is None else f"{asked_s:g} s"
        logger.info("HTTP %d: %s is left alone for %s", response.status, lane, for_how_long)
        frontier.wait(lane, asked_s or 0.0)
        if self._crawler.stats is not None:
            self._crawler.stats.inc_value(f"scheduler/left_alone/{response.status}")
        if not put_off(request):
            return response
        raise NotNow(f"{lane} asks to be left alone")
