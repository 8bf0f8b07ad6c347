"""A site whose file is missing, or was never right, when a crawler needs it: nothing can be asked, so what is queued waits.

The site's breaker holds it, with what is wrong as the reason, until `probe_sites` finds that the file is right. Whoever closes
that breaker by hand while it is not gives up what waits: it goes to the dead ones with the reason.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Self
from weakref import WeakKeyDictionary

from scrapy.exceptions import IgnoreRequest

from forums.sites import Site, SiteError, site_to_ask
from forums.sites.definition.breaker_options import BreakerOptions
from forums.sites.definition.load import is_site_name
from forums.sites.http.soft_block import BlockVerdict, Cause
from redis_components.errors import TaskMustWait
from redis_components.scheduler import scheduler_of, set_aside

from .open_in_background import in_background
from .state import is_given_up, open_breaker

if TYPE_CHECKING:
    import redis
    from scrapy import Request
    from scrapy.crawler import Crawler

AGAIN_S = 1.0
"""Time between two tries to open the breaker of a site; until it is open, what needs the file goes back to the queue."""

_known: WeakKeyDictionary[Crawler, SiteFiles] = WeakKeyDictionary()


class SiteFiles:
    """Downloader middleware, the outermost: behind it every request with `meta["site"]` has a site."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._tried_at: dict[str, float] = {}
        self._given_up: set[str] = set()
        _known[crawler] = self

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """One for each crawl."""
        return cls(crawler)

    def process_request(self, request: Request) -> Request | None:
        """The same request, back to the queue, where its site's file is missing or wrong. Raises IgnoreRequest for what is given
        up.
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
        """The site, to ask for a page of it. Raises TaskMustWait while it is to be held, SiteError for no site, or one that is
        given up.
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
            if is_given_up(client, name):
                self._given_up.add(name)
            else:
                open_breaker(client, name, found, BreakerOptions(), url="", kind="", by=by)

        in_background(self._crawler, name, work)


def site_of_task(crawler: Crawler | None, name: str) -> Site:
    """The site of a start task. Raises TaskMustWait, SiteError."""
    files = None if crawler is None else _known.get(crawler)
    return files.site(name) if files is not None else site_to_ask(name)
