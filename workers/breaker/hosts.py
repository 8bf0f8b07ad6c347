"""Breaker of a host, for any spider: all crawlers pause a host that puts up a wall, and try it again later.

    DOWNLOADER_MIDDLEWARES = {"workers.breaker.hosts.HostWatch": 561}

The verdict on a response that is not the page, and the decision to open a site's breaker (`SiteHealth`), are pure: the time is
passed in. Without a site file there is no page, header or proxy for a probe: the crawl itself is the probe. When the breaker's
time has come, its hold ends, and the first pages either are well or open it again, for twice as long.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, Protocol
from weakref import WeakKeyDictionary

import redis
from scrapy.exceptions import NotConfigured

from redis_components import connection
from redis_components.errors import TrawlError
from redis_components.frontier.holds import names_of
from redis_components.frontier.stock import shared_clock
from redis_components.politeness.limits import retry_after_s
from redis_components.scheduler import scheduler_of
from redis_components.scrapy_glue.engine import ForCrawler, frontier_of, known_frontier
from redis_components.server.names import crawl_name
from workers.application import application
from workers.state.holds import HOST

from .state import open_breaker

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from redis_components.frontier.frontier import Frontier


CHALLENGE, LOGIN, REFUSED, FORMAT = "challenge", "login", "refused", "format"
"""Causes that breakers treat apart; an application has others, too. A label of metrics."""
_REFUSED = frozenset({403, 451})


class Verdict(Protocol):
    """Fault of a response."""

    @property
    def cause(self) -> str:
        """Kind of the fault: `refused` and the like."""

    @property
    def reason(self) -> str:
        """One line, for the operator."""

    @property
    def excerpt(self) -> str:
        """Beginning of the body as text; at most 300 characters."""

    @property
    def this_page_only(self) -> bool:
        """True if it may be about this one page, such as a private thread."""


class Options(Protocol):
    """Thresholds of a breaker: the fields of `HostOptions`."""

    @property
    def enabled(self) -> bool:
        """False: it never opens."""

    @property
    def in_a_row(self) -> int:
        """Blocked responses in a row that open it."""

    @property
    def share(self) -> float:
        """Share of blocked responses among the last ones that opens it."""

    @property
    def attempts(self) -> int:
        """Attempts after which a page is given up that is blocked while others are not."""

    @property
    def probe_s(self) -> float:
        """Seconds until the first probe; doubled for each further one."""

    @property
    def probe_max_s(self) -> float:
        """Longest time between two probes."""


class Refusal(NamedTuple):
    """Verdict by the status alone."""

    reason: str
    cause: str = REFUSED
    excerpt: str = ""
    this_page_only: bool = True


class HostOptions(NamedTuple):
    """Options of the breaker of a host. A site file has its own: `BreakerOptions` in `forum_reader/definition/site.py`."""

    enabled: bool = True
    in_a_row: int = 5
    share: float = 0.5
    attempts: int = 3
    probe_s: float = 60.0
    probe_max_s: float = 3600.0


def refusal(response: Response) -> Refusal | None:
    """Return the verdict on a response that refuses the page by its status, 403 or 451; None for any other."""
    return Refusal(f"refused (HTTP {response.status})") if response.status in _REFUSED else None


WINDOW = 40
"""Number of recent answers of which the share of blocked ones is computed."""
LEAST_BLOCKED = 10
"""Blocked answers in the window below which their share does not count."""
SETTLING_S = 30.0
"""After an opening, answers to requests in flight are not counted: the time until the hold has reached every process, and
more.
"""
STUMBLES = 4
"""Failed tries that open the breaker, as a multiple of `in_a_row`: each page is tried five times."""
MOST_NOTED = 10_000
"""Pages whose first block is remembered."""
MOST_TURNS = 3
"""How many times `attempts` a page may be blocked in all, over any number of openings, before it is given up."""

_OF_A_PAGE = frozenset({LOGIN, REFUSED})


class Step(StrEnum):
    """Next step for a blocked page."""

    AGAIN = "again"  # back to the queue
    OPEN = "open"  # back to the queue, and the site is held
    GIVE_UP = "give up"  # to the dead letters, with the reason
    PRIVATE = "private"  # as GIVE_UP, for a page that is blocked alone: other pages of its kind came between


class SiteHealth:
    """Answers of one kind of page of one site in this process: a site may block threads but not lists."""

    def __init__(self, goods: int = 0) -> None:
        self.in_a_row = 0  # blocked answers since the last page of the site
        self.pages: set[str] = set()  # their URLs
        self.stumbles = 0  # failed tries since the last answer
        self.opened_at = float("-inf")
        self.goods = goods  # pages of the site
        self._first: dict[str, int] = {}  # blocked pages -> good pages before the first block
        self._last = deque([False] * min(goods, WINDOW), maxlen=WINDOW)  # True: blocked

    def is_settling(self, now: float) -> bool:
        """Return True while the hold of an opening may not have reached every process."""
        return now - self.opened_at < SETTLING_S

    def answered(self) -> None:
        """Record an answer of any kind, such as a page or a 404."""
        self.stumbles = 0

    def stumbled(self, options: Options, *, now: float) -> bool:
        """Record a failed try that is repeated: no answer, or a busy site. Return True if it opens the breaker: a site that hangs
        would otherwise take the time of all others until each page's tries are spent.
        """
        if self.is_settling(now):
            return False
        self.stumbles += 1
        if not options.enabled or self.stumbles < STUMBLES * options.in_a_row:
            return False
        self._restart(now)
        return True

    def good(self) -> None:
        """Record a page of the site."""
        self.goods += 1
        if self.in_a_row:
            self.in_a_row = 0
            self.pages.clear()
        self._last.append(False)

    def bad(self, verdict: Verdict, url: str, blocks: int, options: Options, *, held: bool, now: float) -> Step:
        """Record a blocked answer, the `blocks`th of this page, and return the next step. `held`: the site is held already.

        A wall opens the breaker after `in_a_row` answers, or if one page was blocked `attempts` times and nothing else came.
        Answers that may concern the page alone, such as a private thread, must occur on `in_a_row` pages, or three times as
        often. A page is given up after `attempts` if other pages were well meanwhile, or none were requested.
        """
        others_are_well = self.goods > self._note(url)
        if blocks >= MOST_TURNS * options.attempts:
            return Step.GIVE_UP
        if held or self.is_settling(now):
            return Step.AGAIN
        self.in_a_row += 1
        self.pages.add(url)
        self._last.append(True)
        if options.enabled and self._is_broken(verdict, blocks, options):
            self._restart(now)
            return Step.OPEN
        if blocks < options.attempts:
            return Step.AGAIN
        if others_are_well:
            del self._first[url]
            return Step.PRIVATE if verdict.this_page_only and verdict.cause in _OF_A_PAGE else Step.GIVE_UP
        is_alone = len(self.pages) == 1 or self._is_odd(verdict) or not options.enabled
        return Step.GIVE_UP if is_alone else Step.AGAIN

    def _is_odd(self, verdict: Verdict) -> bool:
        """Return True for an unexpected page that is not a wall, while other pages were read lately: at the end of a queue,
        removed threads with status 200 may be all that is left. Only their share among all pages counts against the site.
        """
        return verdict.this_page_only and verdict.cause == FORMAT and False in self._last

    def _note(self, url: str) -> int:
        """Return the number of good pages before the first block of this page."""
        if len(self._first) >= MOST_NOTED:
            self._first.clear()
        return self._first.setdefault(url, self.goods)

    def _restart(self, now: float) -> None:
        self.opened_at = now
        self.in_a_row = self.stumbles = 0
        self.pages.clear()
        self._last.clear()

    def _is_broken(self, verdict: Verdict, blocks: int, options: Options) -> bool:
        blocked = sum(self._last)
        if blocked >= LEAST_BLOCKED and len(self._last) == WINDOW and blocked >= options.share * WINDOW:
            return True
        if self._is_odd(verdict):
            return False
        if verdict.this_page_only:
            return len(self.pages) >= options.in_a_row or self.in_a_row >= 3 * options.in_a_row
        return self.in_a_row >= options.in_a_row or blocks >= options.attempts <= self.in_a_row


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


class HostWatch(ForCrawler):
    """Downloader middleware, inside of Scrapy's retries. A page that met a wall is sent again; after too many blocks the spider
    receives it as without this class.

    Statuses that the spider handles (`handle_httpstatus_list`) are passed through.
    """

    def __init__(self, crawler: Crawler) -> None:
        """Begin; raises NotConfigured for a spider of an application, which judges its pages by the files of their sites."""
        super().__init__(crawler)
        if getattr(crawler.spidercls, "reads_site_files", False):
            raise NotConfigured
        self._health: OrderedDict[str, SiteHealth] = OrderedDict()
        settings = crawler.settings
        self._all: bool = settings.getbool("HTTPERROR_ALLOW_ALL")
        self._wanted = {str(status) for status in settings.getlist("HTTPERROR_ALLOWED_CODES")}

    def process_response(self, request: Request, response: Response) -> Request | Response:
        """Return the response, or the request that replaces it."""
        frontier = known_frontier(self._crawler)
        if frontier is None:
            return response
        host = next(names_of(request.meta.get("site"), request.url), "")
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
            work(connection.from_settings(crawler.settings), by)
        except (redis.RedisError, TrawlError, OSError) as error:
            logger.error("the breaker of site %s could not be opened: %s", site, error)

    threading.Thread(target=run, name=f"breaker of {site}", daemon=True).start()
