"""Missing pages that lists link to, and missing site files: decides if the site or its file is at fault.

One thread may be removed between the list and its page. If pages are missing one after the other and none is found, the URL in
the site file is wrong, or the site has changed it: then nothing may be stored as removed. A site whose file is missing or invalid
is held until the file is right or an operator gives it up.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from scrapy.exceptions import IgnoreRequest

from forum_reader.definition.fields import DISPENSABLE
from forum_reader.definition.site import BreakerOptions
from forum_reader.page.soft_block import BlockVerdict, Cause
from forums.sites import Site, SiteError, site_to_ask
from forums.sites.load import is_site_name
from redis_components.errors import TaskMustWait
from redis_components.scheduler import scheduler_of, set_aside
from redis_components.scrapy_glue.engine import ForCrawler
from workers.breaker.hosts import MOST_TURNS, SETTLING_S, Step, in_background
from workers.state.holds import Breakers

from .state import is_given_up, open_breaker

if TYPE_CHECKING:
    import redis
    from scrapy import Request
    from scrapy.crawler import Crawler


IN_A_ROW = 2
"""Different pages that open the breaker, as a multiple of `in_a_row`: a missing page is weaker evidence than a wall."""
LEAST = 3
"""Different pages that open it if no page of this kind was ever found and each was tried `attempts` times."""
BELIEVED_S = 3600.0
"""After a probe has found the site well, missing pages are accepted for this time, under the same site file."""


class MissingPages:
    """Missing pages of one kind of page of one site in this process."""

    def __init__(self) -> None:
        self.urls: set[str] = set()  # missing since the last page that was found
        self._goods = 0
        self._opened_at = float("-inf")
        self._opened_by = ""  # digest of the site file at that time
        self._count = 0  # pages that opened it

    def is_settling(self, now: float) -> bool:
        """Return True while the hold of an opening may not have reached every process."""
        return now - self._opened_at < SETTLING_S

    def good(self) -> None:
        """Record a page of this kind that was found."""
        self._goods += 1
        self.urls.clear()

    def step(
        self, url: str, blocks: int, file: str, options: BreakerOptions, *, is_check: bool, held: bool, now: float
    ) -> Step | None:
        """Return the next step for a missing page that went back to the queue `blocks` times: AGAIN, OPEN, or None to accept it.

        `file`: digest of the site file. A page that is only checked again (`is_check`) is likely removed and does not count.
        """
        if not options.enabled or blocks >= MOST_TURNS * options.attempts:
            return None
        if held or self.is_settling(now):
            return Step.AGAIN
        if self._opened_by == file and now - self._opened_at < BELIEVED_S:
            return None
        if not is_check:
            self.urls.add(url)
        if len(self.urls) < 2:
            return None
        tried_enough = blocks + 1 >= options.attempts
        if len(self.urls) >= IN_A_ROW * options.in_a_row or (tried_enough and not self._goods and len(self.urls) >= LEAST):
            self._opened_at, self._opened_by, self._count = now, file, len(self.urls)
            self.urls.clear()
            return Step.OPEN
        return None if tried_enough else Step.AGAIN

    def reason(self, kind: str, what: str) -> str:
        """Return why the breaker opens, for people; `what` is the site's answer, such as `HTTP 404`."""
        return f"every {kind} page is missing ({what}), {self._count} one after the other: is [pages.{kind}] url right?"


def should_exist(site: Site, page: Mapping[str, Any], reading: Mapping[str, Any]) -> bool:
    """Return True if a list, or an opening post, links to the page."""
    if not reading or page.get("number", 1) != 1 or page["kind"] in DISPENSABLE:
        return False
    return page["kind"] == "thread" or site.pages.thread is None or bool(reading.get("replies"))


AGAIN_S = 1.0
"""Interval of tries to open the breaker of a site; until it is open, requests that need the file go back to the queue."""

_known: WeakKeyDictionary[Crawler, SiteFiles] = WeakKeyDictionary()


class SiteFiles(ForCrawler):
    """Outermost downloader middleware: behind it every request with `meta["site"]` has a valid site."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._tried_at: dict[str, float] = {}
        self._given_up: set[str] = set()
        _known[crawler] = self

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
