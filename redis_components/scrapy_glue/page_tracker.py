"""The pages that Scrapy works on for this process, each with the lease that it stands for, until it is done with them."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING

from scrapy import Request
from scrapy.exceptions import CloseSpider
from scrapy.spidermiddlewares.httperror import HttpError
from scrapy.utils.asyncio import is_asyncio_available

from .engine import stop_crawl
from .internals import take_back
from .page import Page, current_page

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from twisted.python.failure import Failure

    from redis_components.frontier.frontier import Frontier

    from .site_concurrency import SitePlaces

logger = logging.getLogger(__name__)


_TLS_SETTINGS = re.compile(r" ssl:(?:<[^<>]*>|default|True|False|None)(?= \[|$)")


def reason_of(failure: Failure) -> str:
    """Return the reason of a failure for display: `HTTP 404`, or the error's name and text."""
    if isinstance(failure.value, HttpError):
        return f"HTTP {failure.value.response.status}"
    return f"{type(failure.value).__name__}: {plain(failure.getErrorMessage())}"


def plain(message: str) -> str:
    """Return an exception's message without the object of the TLS settings, which aiohttp names also where the
    address is http.
    """
    return _TLS_SETTINGS.sub("", message)


class PageBook:
    """`pages` is open to the scheduler, which writes each request that it hands out into it.

    Leases are kept apart from the requests, not in `meta`: copies, retries and redirects would carry them along and ack twice.
    """

    def __init__(self, crawler: Crawler, frontier: Frontier, count: Callable[[str], None]) -> None:
        self.pages: dict[Request, Page] = {}
        self.places: SitePlaces | None = None
        """The places of sites; None: not limited by site."""
        self._crawler = crawler
        self._frontier = frontier
        self._count = count
        self._has_contexts = is_asyncio_available()

    def begin(self, request: Request) -> None:
        """Begin a page or its part, as Scrapy begins with `request`."""
        if self._has_contexts:
            current_page.set(self.pages.get(request))

    def finish(self, request: Request) -> None:
        """Ack `request`, as Scrapy is done with it (edge c)."""
        page = self.pages.pop(request, None)
        if page is not None and page.site and page.request is request and self.places is not None:
            self.places.leave(page.site)
            self._frontier.find_place()
        if page is not None and page.finish_part(self._frontier) and page.reason is not None and not page.cut_off:
            logger.error("%s is set aside in %s: %s", request, self._frontier.config.keys.dead(), page.reason)
            self._count("scheduler/given_up")

    def give_up(self, request: Request, reason: str) -> None:
        """Keep `request` among the dead ones with `reason` (edge f) instead of acking it, once Scrapy is done with it."""
        page = self.pages.get(request)
        if page is not None:
            page.give_up(request, reason)

    def fail(self, request: Request, failure: Failure) -> None:
        """Keep a page whose callback raised, to be replayed once that is mended. CloseSpider is not a failure of the page, which
        was not read to its end: it is released (edge d), so that a later run crawls it again.
        """
        if isinstance(failure.value, CloseSpider):
            self._cut_off(request)
        else:
            self.give_up(request, reason_of(failure))

    def fail_item(self, failure: Failure, response: Response | None) -> None:
        """Keep the page of an item that failed in a pipeline."""
        request = getattr(response, "request", None)  # items of start() have no response
        if request is None:
            return
        if isinstance(failure.value, CloseSpider):
            # Scrapy itself only logs it here. The page goes back to the queue, so this process must not take it again.
            self._cut_off(request)
            stop_crawl(self._crawler, failure.value.reason)
        else:
            self.give_up(request, reason_of(failure))

    def put_off(self, request: Request, *, sent: bool) -> bool:
        """Give the lease of `request` back to the queue (edge d) once Scrapy is done with it, as its site asks to be left alone.
        False where it is not a separate page, as for robots.txt or a file. `sent`: the limits of the site count it.
        """
        page = self.pages.get(request)
        if page is None or page.request is not request:
            return False
        page.cut_off = True
        if sent:
            page.sent = True
        page.leave_unsent(self._frontier)
        request.errback = None  # it did not fail; its next owner reads it again
        return True

    def leave_unsent(self, request: Request) -> None:
        """Uncount a page that is finished without being sent."""
        page = self.pages.get(request)
        if page is not None and page.request is request:
            page.leave_unsent(self._frontier)

    def take_back(self, is_held: Callable[[Request], bool]) -> None:
        """Give the leases of held pages back that wait in the downloader for their turn (edge d)."""

        def is_held_page(request: Request) -> bool:
            page = self.pages.get(request)  # None: a page at work asked for it, as for robots.txt or a file
            if page is None or page.request is not request or not is_held(request):
                return False
            page.cut_off = True
            page.leave_unsent(self._frontier)
            return True

        take_back(self._crawler, is_held_page)

    def is_late(self, request: Request) -> bool:
        """Return True if it is too late to send `request`, by the limits of its site: then its lease goes back (edge d)."""
        page, working = self.pages.get(request), current_page.get()
        for one in (page, working):  # a page at work may ask for robots.txt or files
            if one is not None:
                one.seen_at = self._frontier.now()
        if page is None or page.request is not request:
            return False
        if self._frontier.now() < page.until:
            page.sent = True
            return False
        page.cut_off = True
        page.leave_unsent(self._frontier)
        return True

    def _cut_off(self, request: Request) -> None:
        page = self.pages.get(request)
        if page is not None:
            page.cut_off = True
