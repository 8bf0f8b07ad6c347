"""Breaker of a host, for any spider: all crawlers pause a host that puts up a wall, and try it again later.

    DOWNLOADER_MIDDLEWARES = {"workers.breaker.hosts.HostWatch": 561}

Without a site file there is no page, header or proxy for a probe: the crawl itself is the probe. When the breaker's time has
come, its hold ends, and the first pages either are well or open it again, for twice as long.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Self
from weakref import WeakKeyDictionary

import redis

from redis_components import connection
from redis_components.errors import TrawlError
from redis_components.frontier.holds import names_of
from redis_components.frontier.stock import shared_clock
from redis_components.politeness.limits import retry_after_s
from redis_components.scheduler import scheduler_of
from redis_components.scrapy_glue.engine import frontier_of, known_frontier
from redis_components.server.names import crawl_name
from workers.application import application
from workers.process.page_at_work import is_site_page
from workers.state.breakers import HOST

from .health import CHALLENGE, REFUSED, HostOptions, SiteHealth, Step, Verdict, refusal
from .state import open_breaker

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from redis_components.frontier.frontier import Frontier

MOST_HOSTS = 1000
"""Hosts whose last answers a process remembers."""
OPTIONS = HostOptions()
_WALLS = frozenset({CHALLENGE, REFUSED})
"""Causes that Scrapy does not handle. It retries busy and silent hosts; a login page may be what the spider requested."""

BLOCKED = "blocked"
"""Key in `meta`: how many times this page was blocked."""
WAIT_S = 1.0
"""Delay of a page whose site has just been held. A hold reaches a crawler within 2 s; without the delay the page would come back
at once, again and again, and be given up, or stored as removed, before the hold applies.
"""
_OF_ONE_FETCH = ("retry_times", "redirect_times", "redirect_ttl", "redirect_urls", "redirect_reasons", "fetched_at")

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
        found = verdict_on(response) or refusal(response)
        if found is None or found.cause not in _WALLS:
            if 200 <= response.status < 300:
                self._of(host).good()
            return response
        if not host or self._is_wanted(request, response.status):
            return response
        return self._walled(frontier, host, request, response, found) or response

    def _walled(self, frontier: Frontier, host: str, request: Request, response: Response, found: Verdict) -> Request | None:
        blocks, health = request.meta.get(BLOCKED, 0) + 1, self._of(host)
        held = frontier.holds.keeps_back(names_of(request.meta.get("site"), request.url))
        step = health.bad(found, request.url, blocks, OPTIONS, held=held, now=time.monotonic())
        if step in (Step.GIVE_UP, Step.PRIVATE):
            return None
        if step is Step.OPEN:
            after, date = ((response.headers.get(name) or b"").decode("latin-1") for name in ("Retry-After", "Date"))
            self._open(host, request.url, found, retry_after_s(after, date) or 0.0)
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
        health = self._health.get(host) or self._health.setdefault(host, SiteHealth())
        self._health.move_to_end(host)
        if len(self._health) > MOST_HOSTS:
            self._health.popitem(last=False)
        return health

    def _open(self, host: str, url: str, found: Verdict, asked_s: float) -> None:
        """Open the breaker in the background; after a failure later answers try again."""

        def work(client: redis.Redis, by: str) -> None:
            open_breaker(client, host, found, OPTIONS, url=url, kind=HOST, by=by, asked_s=asked_s)

        in_background(self._crawler, host, work)


_verdicts: WeakKeyDictionary[Response, Verdict | None] = WeakKeyDictionary()


def verdict_on(response: Response) -> Verdict | None:
    """Return the application's verdict on a response, which is read once."""
    if response not in _verdicts:
        _verdicts[response] = application().verdict(response)
    return _verdicts[response]


def sent_again(request: Request, blocks: int, *, waits: bool = False) -> Request:
    """Return the request at a lower priority, behind other repeated ones; with `waits` it is sent after `WAIT_S`."""
    meta = {name: value for name, value in request.meta.items() if name not in _OF_ONE_FETCH}
    if waits:
        meta["not_before"] = shared_clock.time() + WAIT_S
    meta[BLOCKED] = blocks
    return request.replace(url=first_url(request), meta=meta, dont_filter=True, priority=request.priority - 1)


def first_url(request: Request) -> str:
    """Return the requested URL, before redirects."""
    urls = request.meta.get("redirect_urls")
    return urls[0] if isinstance(urls, list) and urls and isinstance(urls[0], str) else request.url


def in_background(crawler: Crawler, site: str, work: Callable[[redis.Redis, str], object]) -> None:
    """Call `work` in a thread with a Redis client and the name of this process: Redis may be slow, and the reactor must not wait.
    A failure is logged; the next bad answer of the site, in any process, tries again.
    """
    by = frontier_of(crawler).owner if scheduler_of(crawler) is not None else crawl_name(crawler.spidercls)

    def run() -> None:
        try:
            with connection.from_settings(crawler.settings) as client:
                work(client, by)
        except (redis.RedisError, TrawlError, OSError) as error:
            logger.error("the breaker of site %s could not be opened: %s", site, error)

    threading.Thread(target=run, name=f"breaker of {site}", daemon=True).start()
