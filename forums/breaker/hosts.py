"""Breaker of a host, for any spider: all crawlers pause a host that puts up a wall, and try it again later.

    DOWNLOADER_MIDDLEWARES = {"forums.breaker.hosts.HostWatch": 561}

Without a site file there is no page, header or proxy for a probe: the crawl itself is the probe. When the breaker's time has
come, its hold ends, and the first pages either are well or open it again, for twice as long.
"""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Self

import redis
from msgspec.structs import replace

from forum_reader.definition.site_options import BreakerOptions
from forum_reader.page import soft_block
from forum_reader.page.soft_block import BlockVerdict, Cause
from forums.state.site_breakers import HOST, Breaker, Breakers
from redis_components.frontier.holds import names_of
from redis_components.scrapy_glue.engine import known_frontier
from workers.http.site_page import is_site_page

from .health import SETTLING_S, SiteHealth, Step
from .missing_site_file import in_background
from .state import BLOCKED, close_breaker, open_breaker, sent_again

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from redis_components.frontier.frontier import Frontier

MOST_HOSTS = 1000
"""Hosts whose last answers a process remembers."""
OPTIONS = BreakerOptions(probe_s=2 * SETTLING_S)  # no retry of a host before answers to requests in flight are over
_WALLS = frozenset({Cause.CHALLENGE, Cause.REFUSED})
"""Causes that Scrapy does not handle. It retries busy and silent hosts; a login page may be what the spider requested."""

logger = logging.getLogger(__name__)


class HostWatch:
    """Downloader middleware, inside of Scrapy's retries. A page that met a wall is sent again; after too many blocks the spider
    receives it as without this class.

    Pages of the forum spiders and statuses that the spider handles (`handle_httpstatus_list`) are passed through.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._health: OrderedDict[str, SiteHealth] = OrderedDict()
        settings = crawler.settings
        self._all: bool = settings.getbool("HTTPERROR_ALLOW_ALL")
        self._wanted = {str(status) for status in settings.getlist("HTTPERROR_ALLOWED_CODES")}

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Return a new instance for the crawl."""
        return cls(crawler)

    def process_response(self, request: Request, response: Response) -> Request | Response:
        """Return the response, or the request that replaces it."""
        frontier = known_frontier(self._crawler)
        meta = request.meta
        if frontier is None or is_site_page(meta):
            return response
        host = next(names_of(meta.get("site"), request.url), "")
        found = soft_block.verdict(response)
        if found is None or found.cause not in _WALLS:
            if 200 <= response.status < 300:
                self._of(host).good()
            return response
        if not host or self._is_wanted(request, response.status):
            return response
        return self._walled(frontier, host, request, found) or response

    def _walled(self, frontier: Frontier, host: str, request: Request, found: BlockVerdict) -> Request | None:
        blocks, health = request.meta.get(BLOCKED, 0) + 1, self._of(host)
        held = frontier.holds.keeps_back(names_of(request.meta.get("site"), request.url))
        step = health.bad(found, request.url, blocks, OPTIONS, held=held, now=time.monotonic())
        if step in (Step.GIVE_UP, Step.PRIVATE):
            return None
        if step is Step.OPEN:
            self._open(host, request.url, found)
        logger.info("%s: blocked (%s), back to the queue: %s", host, found.reason, request.url)
        return sent_again(request, blocks, waits=health.is_settling(time.monotonic()))

    def _is_wanted(self, request: Request, status: int) -> bool:
        """Return True if the spider's callback receives this status, as `HttpErrorMiddleware` decides it."""
        meta = request.meta
        if meta.get("handle_httpstatus_all"):
            return True
        if "handle_httpstatus_list" in meta:
            return status in meta["handle_httpstatus_list"]
        if self._all or 200 <= status < 300:
            return self._all
        return status in getattr(self._crawler.spider, "handle_httpstatus_list", ()) or str(status) in self._wanted

    def _of(self, host: str) -> SiteHealth:
        health = self._health.setdefault(host, SiteHealth())
        self._health.move_to_end(host)
        if len(self._health) > MOST_HOSTS:
            self._health.popitem(last=False)
        return health

    def _open(self, host: str, url: str, found: BlockVerdict) -> None:
        """Open the breaker in the background; after a failure later answers try again."""

        def work(client: redis.Redis, by: str) -> None:
            open_breaker(client, host, found, OPTIONS, url=url, kind=HOST, by=by)

        in_background(self._crawler, host, work)


def try_again(client: redis.Redis, breakers: Breakers, host: str, breaker: Breaker) -> str:
    """End the hold of a host whose time has come; return the outcome. If it opens again within a day, it is for twice as long."""
    if not breakers.put(host, replace(breaker, step=breaker.step + 1)):
        return "another process has changed it"
    close_breaker(client, host, "the crawl tries it again")
    return "tried again"
