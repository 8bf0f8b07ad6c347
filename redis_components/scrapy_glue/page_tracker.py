"""A lease while Scrapy works on it: a page, or a start task, with all that lives in this process only.

A request that cannot be stored is in memory and nowhere else. It counts as part of the page it was found on: the page's lease
ends when its last part is finished, so that a crash before that gives the page back, and all that it leads to with it.
"""

from __future__ import annotations

import logging
import math
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from scrapy import Request
from scrapy.exceptions import CloseSpider
from scrapy.utils.asyncio import is_asyncio_available

from redis_components.errors import Unserializable
from redis_components.frontier.messages import Lease, QueueOrder
from redis_components.server.untrusted_values import LATEST

from .engine import stop_crawl
from .failure_reasons import reason_of
from .internals import running_scheduler, take_back

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from twisted.python.failure import Failure

    from redis_components.frontier.frontier import Frontier


current_page: ContextVar[Page | None] = ContextVar("trawl_page", default=None)
"""The page in work in the running code: set for each page by the scheduler, for each start task by `RedisMixin`.

Scrapy runs the download, the callback and the pipelines of one request in separate asyncio tasks, which inherit it. Without
asyncio (another Twisted reactor) Scrapy's cooperator runs callbacks of all pages in one context, and this stays None there.
"""


@dataclass(slots=True, eq=False)
class Page:
    """A leased request (None: a start task), from its lease to its end."""

    lease_id: str  # "" once it is settled, or not ours any more
    request: Request | None = None
    site: str = ""  # whose place it has; "" where places are not counted
    attempts: int = 0  # processes that died while they worked on it
    until: float = math.inf  # s of the frontier's clock from which it is too late to send it
    seen_at: float = 0.0  # s of the frontier's clock: when it was begun, or something was last sent for it
    lane: str = ""  # whose limits count it while it is not sent yet; "": none do, or it was sent
    parts: int = 1  # itself, and the requests kept in memory that came from it
    reason: str | None = None  # why it is given up
    cut_off: bool = False  # its output was not read to the end, because the crawl closes
    ended: bool = False  # it gave no sign of life for too long: the rest of it is not worked on
    steps: dict[object, tuple[str, Callable[[], object]]] = field(default_factory=dict)
    """What Scrapy awaits for it now, in its order: a name, and how to cancel it. A step that is ended is not here any more."""

    def give_up(self, request: Request, reason: str) -> None:
        """Let the lease end among the dead ones, because `request`, a part of this page, failed."""
        self.reason = reason if request is self.request else f"{request}, found here and kept in memory: {reason}"

    def finish_part(self, frontier: Frontier) -> bool:
        """Finish one part. After the last one the lease ends: released (edge d) where its output was cut off or it was not sent,
        buried (f) where it is given up, else acked (c). Return True if it was the last one of a lease that is still ours.
        """
        self.parts -= 1
        if self.parts or not self.lease_id:
            return False
        if self.cut_off:
            frontier.release(self.lease_id)
        elif self.reason is not None:
            frontier.bury(self.lease_id, self.reason)
        else:
            frontier.ack(self.lease_id)
        self.lease_id = ""
        return True

    def release(self, frontier: Frontier) -> None:
        """Give the lease back although parts are unfinished: they end with this process."""
        if self.lease_id:
            self.leave_unsent(frontier)
            frontier.release(self.lease_id)
            self.lease_id = ""

    def leave_unsent(self, frontier: Frontier) -> None:
        """Uncount it in the limits of its site, unless it was sent."""
        if self.lane and self.lease_id:
            frontier.free_time(self.lease_id)
            self.lane = ""


class SiteSlots:
    """`most` returns how many requests of a site may be at work here; None: any number. No site has more than three quarters of
    `concurrency` places, so one that hangs leaves room for the others with any `most`.
    """

    def __init__(self, by: str, most: Callable[[str], int | None], frontier: Frontier) -> None:
        self._by = by
        self._most = most
        self._frontier = frontier
        self._bound = max(1, frontier.config.concurrency * 3 // 4)
        self._at_work: dict[str, int] = {}

    def name_of(self, meta: Mapping[str, Any], url: str) -> str:
        """Return the site of a request: the field of its `meta`, else where that is `host` the host and port of its URL; "" for
        none.
        """
        if isinstance(named := meta.get(self._by), str):
            return named
        return urlsplit(url).netloc.rpartition("@")[2].lower() if self._by == "host" else ""

    def enter(self, site: str) -> bool:
        """Take a place for a request of `site`; False where there is none."""
        busy = self._at_work.get(site, 0)
        if busy >= self._places(site):
            return False
        self._at_work[site] = busy + 1
        return True

    def leave(self, site: str) -> None:
        """Free the place of a finished request of `site`: requests that waited for it are among the others again."""
        left = self._at_work.pop(site, 1) - 1
        if left:
            self._at_work[site] = left
        if self._frontier.deferred(site):
            for _ in range(max(1, self._places(site) - left)):
                if not self._frontier.recall(site):
                    break

    def room(self) -> dict[str, int]:
        """Return how many more requests are wanted of each site that is worked on here: with twice as many waiting as are at
        work, a site's places are filled until the next start tasks come.
        """
        return {
            site: max(0, 3 * self._places(site) - busy - self._frontier.deferred(site)) for site, busy in self._at_work.items()
        }

    def _places(self, site: str) -> int:
        most = self._most(site)
        return self._bound if most is None else min(most, self._bound)


logger = logging.getLogger(__name__)

MOST_LANES = 10_000


class PageTracker:
    """`pages` is open to the scheduler, which writes each request that it hands out into it.

    Leases are kept apart from the requests, not in `meta`: copies, retries and redirects would carry them along and ack twice.
    """

    def __init__(self, crawler: Crawler, frontier: Frontier, count: Callable[[str], None]) -> None:
        self.pages: dict[Request, Page] = {}
        self.places: SiteSlots | None = None
        """The places of sites; None: not limited by site."""
        self._slots: dict[str, str] = {}  # lane -> its download slot; "": it has several
        self._crawler = crawler
        self._frontier = frontier
        self._count = count
        self._has_contexts = is_asyncio_available()

    def own(self, request: Request) -> Page | None:
        """Return the page of `request`; None where it is a part of another one, as for robots.txt or a file, or has no lease."""
        page = self.pages.get(request)
        return page if page is not None and page.request is request else None

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
        if page := self.pages.get(request):
            page.give_up(request, reason)

    def fail(self, request: Request, failure: Failure) -> bool:
        """Keep a page whose callback raised, to be replayed once that is mended. CloseSpider is not a failure of the page, which
        was not read to its end: it is released (edge d), so that a later run crawls it again; then return False.
        """
        failed = not isinstance(failure.value, CloseSpider)
        if failed:
            self.give_up(request, reason_of(failure))
        elif page := self.pages.get(request):
            page.cut_off = True
        return failed

    def fail_item(self, failure: Failure, response: Response | None) -> None:
        """Keep the page of an item that failed in a pipeline."""
        request = getattr(response, "request", None)  # items of start() have no response
        if request is not None and not self.fail(request, failure):
            # Scrapy itself only logs it here. The page goes back to the queue, so this process must not take it again.
            stop_crawl(self._crawler, getattr(failure.value, "reason", ""))

    def put_off(self, request: Request, *, sent: bool) -> bool:
        """Give the lease of `request` back to the queue (edge d) once Scrapy is done with it, as its site asks to be left alone.
        False where it is not a separate page, as for robots.txt or a file, and where a queue class of the user's orders. `sent`:
        the limits of the site count it.
        """
        page = self.own(request)
        if page is None or self._frontier.config.order is QueueOrder.ADVISED:
            return False
        page.cut_off = True
        if sent:
            page.lane = ""
        page.leave_unsent(self._frontier)
        request.errback = None  # it did not fail; its next owner reads it again
        return True

    def leave_unsent(self, request: Request) -> None:
        """Uncount a page that is finished without being sent."""
        if page := self.own(request):
            page.leave_unsent(self._frontier)

    def count_sent(self, request: Request) -> None:
        """Leave a page counted, as another request was sent at its time."""
        if page := self.own(request):
            page.lane = ""

    def take_back(self, is_held: Callable[[Request], bool]) -> None:
        """Give the leases of held pages back that wait in the downloader for their turn (edge d)."""

        def is_held_page(request: Request) -> bool:
            page = self.own(request)
            if page is None or not is_held(request):
                return False
            page.cut_off = True
            page.leave_unsent(self._frontier)
            return True

        take_back(self._crawler, is_held_page)

    def is_late(self, request: Request) -> bool:
        """Return True if it is too late to send `request`, by the limits of its site: then its lease goes back (edge d)."""
        page, working, now = self.pages.get(request), current_page.get(), self._frontier.now()
        for one in (page, working):  # a page at work may ask for robots.txt or files
            if one is not None:
                one.seen_at = now
        if page is None or page.request is not request:
            return False
        if now < page.until:
            page.lane = ""
            return False
        page.cut_off = True
        page.leave_unsent(self._frontier)
        return True

    def is_paced(self, request: Request) -> bool:
        """Return True if the limits of a site count `request`, which is not sent yet."""
        page = self.pages.get(request)
        return page is not None and page.lane != "" and page.request is request

    def put_back(self, request: Request, wait_s: float) -> None:
        """Give the lease of a paced request back (edge d), as the site has no place for it here for `wait_s`."""
        page = self.pages[request]
        page.cut_off = True
        self._frontier.rest(page.lane, wait_s)
        page.leave_unsent(self._frontier)

    def rest_after(self, request: Request, slot: str, wait_s: float) -> None:
        """Lease nothing of the lane of `request`, which is sent now, for `wait_s`. Not where it has several download slots."""
        lane = self.pages[request].lane
        if len(self._slots) > MOST_LANES:
            self._slots.clear()
        if self._slots.setdefault(lane, slot) == slot:
            self._frontier.rest(lane, wait_s)
        else:
            self._slots[lane] = ""


def tracker_of(crawler: Crawler) -> PageTracker | None:
    """Return the tracker of a running crawl; None where the scheduler is another one than ours."""
    return getattr(running_scheduler(crawler), "book", None)


class RequestLanes:
    """Lanes and times of requests. A queue class of the user's orders as it wants: then no limits are kept, and `not_before` does
    not count.
    """

    def __init__(self, frontier: Frontier, book: PageTracker) -> None:
        self._frontier = frontier
        self._limits = frontier.limits
        self._book = book
        self._kept = frontier.config.order is not QueueOrder.ADVISED
        self._quota = frontier.config.quota

    def pace_of(self, request: Request) -> tuple[str, float]:
        """Return lane ("" without limits) and time (epoch s, 0.0 for any) of a request to store. Raises Unserializable for a
        `meta["not_before"]` that is not a time.
        """
        lane = self._lane_of(request) if self._kept and (self._quota or self._limits.lanes) else ""
        value = request.meta.get("not_before")
        if value is None:
            return lane, 0.0
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < LATEST:
            return lane, float(value)
        raise Unserializable(f"not_before: {value!r} is not a time; write seconds since 1970, as time.time() has them")

    def shelves(self, lease: Lease, request: Request) -> bool:
        """Set a lease aside that is not from the lane of its request: its site has limits since it was stored."""
        if not (self._kept and (self._quota or self._limits.lanes)) or lease.lane not in ("", self._quota):
            return False
        lane = self._lane_of(request)
        if lane == lease.lane:
            return False
        if lease.lane:
            self._frontier.free_time(lease.id)
        self._frontier.shelve(lease.id, lane)
        return True

    def _lane_of(self, request: Request) -> str:
        """Return the lane of the site where that has limits, else the quota of the crawl; "" for neither."""
        return (self._limits.lane_of(request.meta, request.url) if self._limits.lanes else "") or self._quota

    def leave_alone(self) -> None:
        """Give back requests that wait in the downloader for their turn when limits have changed, to be sent when
        they allow it.
        """
        if self._limits.lanes and self._kept:
            self._book.take_back(lambda request: bool(self._limits.lane_of(request.meta, request.url)))
