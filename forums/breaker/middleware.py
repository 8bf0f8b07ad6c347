"""Middleware of each crawler for the breakers: judges every response, sends blocked pages back to the queue, and opens the
breaker of a site whose pages have lost a field that is needed.

A blocked page is never acknowledged as done: a new request replaces it and waits while the site is held. It never reaches a
callback, so a wall is not mistaken for an empty thread.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from scrapy import Request, signals
from scrapy.exceptions import IgnoreRequest
from scrapy.utils.misc import load_object

from forum_reader.definition.fields import DISPENSABLE, NEEDED
from forum_reader.definition.page_requests import elsewhere
from forum_reader.page import soft_block
from forum_reader.page.soft_block import BlockVerdict, Cause
from forums.raw_pages import prune_here
from forums.records.tasks_and_items import file_digest, now_in_reading, utc_now
from forums.sites import PageGone, Site, SiteError, UnreadablePage, site_in_use
from forums.sites.http.politeness import NotAllowed
from redis_components.frontier.holds import HoldKind
from redis_components.scheduler import scheduler_of
from redis_components.scrapy_glue.engine import ForCrawler, frontier_of
from redis_components.scrapy_glue.failure_reasons import plain, silence_of
from redis_components.server.printable import kind_of
from workers.breaker.hosts import BLOCKED, SiteHealth, Step, first_url, in_background, sent_again
from workers.process import page_at_work
from workers.process.page_at_work import PageAtWork
from workers.raw_pages import RawPage, RawStore, raw_dir

from .missing import MissingPages, should_exist
from .state import open_breaker

if TYPE_CHECKING:
    import redis
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from forum_reader.reading.page_records import AnyPage, FieldCount

MISSING = frozenset({404, 410})
_WALLS = frozenset({Cause.LOGIN, Cause.REFUSED, Cause.CHALLENGE})

logger = logging.getLogger(__name__)

_watches: WeakKeyDictionary[Crawler, SiteWatch] = WeakKeyDictionary()


class SiteBlocked(IgnoreRequest):
    """A page was blocked too often and is given up. `is_private`: the site refuses this page only."""

    def __init__(self, reason: str, *, is_private: bool = False) -> None:
        super().__init__(reason)
        self.is_private = is_private


class PageBlocked(Exception):
    """Raised in a callback for a response that is not a page of the site; `again` replaces its request."""

    def __init__(self, again: Request) -> None:
        super().__init__(f"{again.url} is fetched again")
        self.again = again


class BackToTheQueue:
    """Spider middleware that yields the replacing request when a callback finds a page blocked."""

    def process_spider_exception(self, response: Response, exception: Exception) -> list[Request] | None:
        """Return the request of a PageBlocked; None for other exceptions."""
        if not isinstance(exception, PageBlocked):
            return None
        response.meta["conditional_forget"] = True  # validators of a wall must not be stored as the page's
        return [exception.again]


EMPTY_PAGES = 20
"""Pages in a row without a field that is needed, of which most had it before: then the site has changed them."""


class NeededField:
    """Pages of one kind of one site with a field that is needed, in this process."""

    def __init__(self) -> None:
        self._filled = self._empty = self._empty_in_a_row = 0

    def is_lost(self, count: FieldCount) -> bool:
        """Count a page; return True if the field has been lost. It is judged again when most pages have it again."""
        if count.empty < count.rows:
            self._filled += 1
            self._empty += self._empty_in_a_row
            self._empty_in_a_row = 0
        elif count.rows:
            self._empty_in_a_row += 1
        if self._empty_in_a_row < EMPTY_PAGES or self._filled <= self._empty:
            return False
        self._filled = self._empty = self._empty_in_a_row = 0
        return True


class SiteWatch(ForCrawler):
    """Downloader middleware between decompression and retries: it sees each answer before a retry hides it.

    It handles only requests with `meta["site"]` and `meta["page"]`, from the forum spiders.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        assert crawler.stats is not None
        self._inc_value = crawler.stats.inc_value
        self._goods: Counter[tuple[str, str]] = Counter()  # pages read, by site and kind
        self._health: dict[tuple[str, str], SiteHealth] = {}  # from the first blocked answer or failed try
        self._walled: set[str] = set()  # sites whose later pages of threads are not for guests
        self._missing: dict[tuple[str, str], MissingPages] = {}
        self._with_rows: set[tuple[str, str]] = set()  # forums whose first list page had rows
        self._fields: dict[tuple[str, str, str], NeededField] = {}  # by site, kind of page and name
        settings = crawler.settings
        self._retries: int = settings.getint("RETRY_TIMES")
        self._no_answer: tuple[type[BaseException], ...] = tuple(
            load_object(one) if isinstance(one, str) else one for one in settings.getlist("RETRY_EXCEPTIONS")
        )
        self._raw = RawStore(raw_dir(), inc_value=self._inc_value, rounds=prune_here)
        _watches[crawler] = self
        crawler.signals.connect(self._raw.close, signals.spider_closed)

    def process_request(self, request: Request) -> None:
        """Note when a page is requested (`_as_of` in `forums/spiders/forum_detail.py`)."""
        if "page" in request.meta:
            request.meta["requested_at"] = utc_now()

    def process_response(self, request: Request, response: Response) -> Request | Response:
        """Return the response if it may be a page of the site; else the request that replaces it. Raises SiteBlocked."""
        asked = _asked(request)
        if asked is None:
            return response
        site, page = asked
        response.request = request  # the engine sets it later
        if response.url != request.url and (wrong := elsewhere(site, response.url, request.url)) is not None:
            return self._blocked(request, site, page, soft_block.led_elsewhere(wrong))
        with page_at_work.reading(_at_work(response, site, page)):
            found = soft_block.verdict(response, _format(site, page))
        if found is None:
            if health := self._health.get((site.name, page["kind"])):
                health.answered()
            if response.status in MISSING and (again := self._doubted(request, site, page, f"HTTP {response.status}")):
                return again
            if 200 <= response.status < 300 and not response.meta.get("unchanged"):
                began = max(str(_reading(request).get("started_at", "")), str(request.meta.get("requested_at", "")))
                request.meta["fetched_at"] = fetched_at = now_in_reading(began)
                if site.raw.keep_days:
                    self._raw.keep(RawPage.of(response, site.name, _context(request, page), fetched_at))
            return response
        if found.cause is Cause.BUSY and not self._is_last_try(request):
            return self._stumbled(request, site, page, found) or response
        return self._blocked(request, site, page, found)

    def process_exception(self, request: Request, exception: Exception) -> Request | None:
        """Return None, to have the request retried or failed, or the request that replaces it. Raises SiteBlocked."""
        if (asked := _asked(request)) is None:
            return None
        site, page = asked
        if isinstance(exception, NotAllowed) and exception.came_from is not None:
            return self._blocked(request, site, page, soft_block.led_elsewhere(str(exception)))
        if not isinstance(exception, self._no_answer):
            return None
        why = silence_of(exception) or f"does not answer ({plain(str(exception)) or kind_of(exception)})"
        reason = f"the forum's server {why}"
        found = BlockVerdict(cause=Cause.UNREACHABLE, reason=" ".join(reason.split())[:300])
        if not self._is_last_try(request):
            return self._stumbled(request, site, page, found)
        return self._blocked(request, site, page, found)

    def read(self, response: Response, page: AnyPage) -> None:
        """Count a parsed page and its fields. Raises PageBlocked, or UnreadablePage, if it is not the site's page after all."""
        request, asked = response.request, _asked(response.request)
        if request is None or asked is None:
            return
        site, context = asked
        kind, number = context["kind"], context.get("number", 1)
        rows = max((count.rows for count in page.fields.values()), default=0)
        is_expected = number == 1 or (kind == "comments" and site.pages.comments.tells_next)
        if not rows and is_expected and (found := self._without_rows(response, site, context)) is not None:
            self._block_again(request, site, context, found)
        if number > 1 and rows:
            self._walled.discard(site.name)
        self._goods[site.name, kind] += 1
        if health := self._health.get((site.name, kind)):
            health.good()
        if (missing := self._missing.get((site.name, kind))) is not None:
            missing.urls.clear()
        if kind == "list" and rows and number == 1:
            self._with_rows.add((site.name, str(context.get("forum"))))
        self._inc_value(f"sites/{site.name}/{kind}/read")  # not `pages`: 49295b45 compares that with rows, which it counted
        for name in () if kind in DISPENSABLE else NEEDED[kind]:
            field = self._fields.setdefault((site.name, kind, name), NeededField())
            if name in page.fields and field.is_lost(page.fields[name]) and site.breaker.enabled:
                reason = f"{kind} pages: {name} is empty on the last {EMPTY_PAGES} pages"
                self._open(request, site, context, BlockVerdict(cause=Cause.DRIFT, reason=reason))

    def unreadable(self, response: Response, error: UnreadablePage) -> None:
        """Handle a page that does not match the site file. Raises PageBlocked, or UnreadablePage if that happened too often;
        returns for a page that is not watched.
        """
        request, asked = response.request, _asked(response.request)
        if request is not None and asked is not None:
            self._block_again(request, *asked, soft_block.unreadable(response, error.reason))

    def gone(self, response: Response, error: PageGone) -> None:
        """Handle a page that reports its content as missing. Raises PageBlocked if that is doubtful."""
        request, asked = response.request, _asked(response.request)
        if request is not None and asked is not None and (again := self._doubted(request, *asked, error.reason)):
            raise PageBlocked(again)

    def _doubted(self, request: Request, site: Site, page: Mapping[str, Any], what: str) -> Request | None:
        """Return the request that replaces a page that should exist and is missing; None if that is accepted.

        It is also accepted for a request made by an older site file: the spider makes the request again by the present one.
        """
        reading, file = _reading(request), file_digest(site)
        if not should_exist(site, page, reading) or reading.get("asked") != file:
            return None
        missing = self._missing.setdefault((site.name, page["kind"]), MissingPages())
        blocks = request.meta.get(BLOCKED, 0)
        step = missing.step(
            request.url,
            blocks,
            file,
            site.breaker,
            goods=self._goods[site.name, page["kind"]],
            is_check=reading.get("mode") == "check",
            held=self._is_held(site),
            now=time.monotonic(),
        )
        if step is None:
            return None
        self._inc_value(f"sites/{site.name}/{page['kind']}/blocked/{Cause.DRIFT}")
        if step is Step.OPEN:
            self._open(request, site, page, BlockVerdict(cause=Cause.DRIFT, reason=missing.reason(page["kind"], what)))
        return sent_again(request, blocks + 1, waits=missing.is_settling(time.monotonic()))

    def _block_again(self, request: Request, site: Site, page: Mapping[str, Any], found: BlockVerdict) -> None:
        try:
            again = self._blocked(request, site, page, found)
        except SiteBlocked as error:
            raise UnreadablePage(str(error)) from error
        raise PageBlocked(again)

    def _without_rows(self, response: Response, site: Site, page: Mapping[str, Any]) -> BlockVerdict | None:
        if page["kind"] == "list" and (site.name, str(page.get("forum"))) in self._with_rows:
            text = soft_block.excerpt(response.body)
            return BlockVerdict(cause=Cause.EMPTY, reason="a list without rows, where there were some", excerpt=text)
        return soft_block.without_rows(response)

    def _of(self, site: Site, page: Mapping[str, Any]) -> SiteHealth:
        key = site.name, page["kind"]
        return self._health.get(key) or self._health.setdefault(key, SiteHealth(self._goods[key]))

    def _is_last_try(self, request: Request) -> bool:
        return bool(request.meta.get("dont_retry")) or request.meta.get("retry_times", 0) >= self._retries

    def _stumbled(self, request: Request, site: Site, page: Mapping[str, Any], found: BlockVerdict) -> Request | None:
        """Handle a failed try. While the site is held, or if this try opens the breaker, the request waits and is not counted."""
        self._inc_value(f"sites/{site.name}/{page['kind']}/stumbled/{found.cause}")
        if page["kind"] in DISPENSABLE:
            return None
        if self._is_held(site):
            return sent_again(request, request.meta.get(BLOCKED, 0), waits=True)
        if self._of(site, page).stumbled(site.breaker, now=time.monotonic()):
            self._open(request, site, page, found)
            return sent_again(request, request.meta.get(BLOCKED, 0), waits=True)
        return None

    def _blocked(self, request: Request, site: Site, page: Mapping[str, Any], found: BlockVerdict) -> Request:
        blocks = request.meta.get(BLOCKED, 0) + 1
        self._inc_value(f"sites/{site.name}/{page['kind']}/blocked/{found.cause}")
        if page["kind"] in DISPENSABLE:
            raise SiteBlocked(f"blocked by {found.reason}")
        is_later = found.cause in _WALLS and page["kind"] == "comments" and _is_later(request)
        if is_later and (found.cause is Cause.LOGIN or site.name in self._walled):
            raise SiteBlocked(f"blocked by {found.reason}", is_private=True)  # this thread's first pages were there
        health, is_held = self._of(site, page), self._is_held(site)
        url = first_url(request) if found.cause is Cause.ELSEWHERE else request.url  # many pages may be redirected to one
        step = health.bad(found, url, blocks, site.breaker, held=is_held, now=time.monotonic())
        if step in (Step.GIVE_UP, Step.PRIVATE):
            reason = f"blocked {blocks} times, at last by {found.reason}"
            if is_later:
                self._walled.add(site.name)
            raise SiteBlocked(reason, is_private=is_later or step is Step.PRIVATE)
        if step is Step.OPEN:
            self._open(request, site, page, found)
        else:
            logger.info("%s: blocked (%s), back to the queue: %s", site.name, found.reason, request.url)
        return sent_again(request, blocks, waits=health.is_settling(time.monotonic()))

    def _is_held(self, site: Site) -> bool:
        if scheduler_of(self._crawler) is None:
            return False
        return frontier_of(self._crawler).holds.sites.get(site.name) is HoldKind.PAUSE

    def _open(self, request: Request, site: Site, page: Mapping[str, Any], found: BlockVerdict) -> None:
        """Open the breaker in the background; after a failure later answers try again."""

        def work(client: redis.Redis, by: str) -> None:
            open_breaker(client, site.name, found, site.breaker, url=request.url, kind=page["kind"], by=by)

        in_background(self._crawler, site.name, work)


def watch_of(crawler: Crawler | None) -> SiteWatch | None:
    """Return the watch of a crawl; None if it is not in the settings."""
    return None if crawler is None else _watches.get(crawler)


def _at_work(response: Response, site: Site, page: Mapping[str, Any]) -> PageAtWork:
    return PageAtWork(url=response.url, site=site.name, kind=page["kind"])


def _asked(request: Request | None) -> tuple[Site, dict[str, Any]] | None:
    """Return site and page of a request; None if it is not from the forum spiders."""
    meta = request.meta if request is not None else {}
    name, page = meta.get("site"), meta.get("page")
    if not isinstance(name, str) or not isinstance(page, dict) or not isinstance(page.get("kind"), str):
        return None
    try:
        return site_in_use(name), page
    except SiteError:  # not a site of this fleet
        return None


def _reading(request: Request) -> dict[str, Any]:
    """Return the thread reading that a request belongs to; empty for other requests."""
    reading = request.cb_kwargs.get("reading")
    return reading if isinstance(reading, dict) else {}


def _is_later(request: Request) -> bool:
    """Return True for a page of a thread of which pages were read before it."""
    reading = _reading(request)
    return int(reading.get("page", 1)) > int(reading.get("first", 1))


def _context(request: Request, page: Mapping[str, Any]) -> dict[str, Any]:
    """Return the page's context for parsing it now or later, with the thread's own URL if the list gave one."""
    url = _reading(request).get("url")
    return {**page, "url": url} if url else dict(page)


def _format(site: Site, page: Mapping[str, Any]) -> str | None:
    try:
        return site.page(page["kind"]).answer
    except (SiteError, AttributeError):
        return None
