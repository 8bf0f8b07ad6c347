"""Holds a site whose file is missing or invalid, until it is right or an operator gives it up."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Self
from weakref import WeakKeyDictionary

from scrapy.exceptions import IgnoreRequest

from forum_reader.definition.site_options import BreakerOptions
from forum_reader.page.soft_block import BlockVerdict, Cause
from forums.sites import Site, SiteError, site_to_ask
from forums.sites.load import is_site_name
from redis_components.errors import TaskMustWait
from redis_components.scheduler import scheduler_of, set_aside
from workers.breaker.hosts import in_background
from workers.state.breakers import Breakers

from .state import is_given_up, open_breaker

if TYPE_CHECKING:
    import redis
    from scrapy import Request
    from scrapy.crawler import Crawler


AGAIN_S = 1.0
"""Interval of tries to open the breaker of a site; until it is open, requests that need the file go back to the queue."""

_known: WeakKeyDictionary[Crawler, SiteFiles] = WeakKeyDictionary()


class SiteFiles:
    """Outermost downloader middleware: behind it every request with `meta["site"]` has a valid site."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._tried_at: dict[str, float] = {}
        self._given_up: set[str] = set()
        _known[crawler] = self

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Return a new instance for the crawl."""
        return cls(crawler)

    def process_request(self, request: Request) -> Request | None:
        """Return the request, back to the queue, if its site's file is missing or invalid. Raises IgnoreRequest if the site was
        given up.
        """
        name = request.meta.get("site")
        if not isinstance(name, str):
            return None
        try:
            self.site(name)
        except TaskMustWait:
            return request.replace(dont_filter=True)
        except SiteError as error:
            set_aside(self._crawler, request, str(error))
            raise IgnoreRequest(str(error)) from error
        return None

    def site(self, name: str) -> Site:
        """Return the site, for requests. Raises TaskMustWait while the site is to be held, SiteError for an unknown site or
        one that was given up.
        """
        try:
            site = site_to_ask(name)
        except SiteError as error:
            if name in self._given_up or not is_site_name(name) or scheduler_of(self._crawler) is None:
                raise
            self._hold(name, error.in_a_line)
            raise TaskMustWait(name, str(error)) from error
        self._given_up.discard(name)
        return site

    def _hold(self, name: str, reason: str) -> None:
        now = time.monotonic()
        if now - self._tried_at.get(name, float("-inf")) < AGAIN_S:
            return
        self._tried_at[name] = now
        found = BlockVerdict(cause=Cause.SITE_FILE, reason=reason)

        def work(client: redis.Redis, by: str) -> None:
            if is_given_up(Breakers(client).get(name)):
                self._given_up.add(name)
            else:
                open_breaker(client, name, found, BreakerOptions(), url="", kind="", by=by)

        in_background(self._crawler, name, work)


def site_of_task(crawler: Crawler | None, name: str) -> Site:
    """Return the site of a start task. Raises TaskMustWait, SiteError."""
    files = None if crawler is None else _known.get(crawler)
    return files.site(name) if files is not None else site_to_ask(name)
