"""Scrapy's scheduler on the shared frontier: synchronous, never waiting for Redis.

    SCHEDULER = "redis_components.scheduler.Scheduler"

Constructor and attributes are scrapy-redis's. Used alone (in a script or a test, without a running engine) it is a
`StandaloneScheduler`.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, cast

from scrapy import Request, Spider, signals
from scrapy.exceptions import CloseSpider
from scrapy.utils.asyncio import call_later

from . import defaults
from .dupefilter import is_fused
from .errors import TrawlError, Undecodable
from .frontier.frontier import Frontier, score_of
from .frontier.holds import names_of
from .frontier.messages import NO_FILTER, Lease, NewRequest, QueueOrder
from .scrapy_glue.custom_classes import OUTAGES, CustomDupeFilter, CustomQueue
from .scrapy_glue.engine import REASON, close_frontier, fail, frontier_of, is_refused, refusing, running_crawler, stop_crawl
from .scrapy_glue.internals import (
    LongWaits,
    check_when_sent,
    downloader_of,
    free_places,
    running_scheduler,
    send_at_once,
    watch_finished,
)
from .scrapy_glue.page_age import PageAges
from .scrapy_glue.page_tracker import Page, PageTracker, RequestLanes, SiteSlots, tracker_of
from .scrapy_glue.scheduler_parts import UnstorableRequests, is_scrapys_kind, log_duplicate, why_never_started
from .scrapy_glue.standalone_scheduler import StandaloneScheduler
from .server.printable import in_words
from .setting_values import number_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from scrapy.crawler import Crawler
    from twisted.internet.defer import Deferred

    from .codec.requests import Codec
    from .spiders import RedisMixin

logger = logging.getLogger(__name__)


class Scheduler(StandaloneScheduler):
    """Leases requests from the frontier and acks each when Scrapy is done with it."""

    _crawler: Crawler | None = None  # whose engine is at work; None: this scheduler is used alone
    _custom_queue: CustomQueue | None = None
    _custom_dupefilter: CustomDupeFilter | None = None
    _idle_since: float | None = None
    _places: SiteSlots | None = None
    _long_waits: LongWaits | None = None
    ages: PageAges | None = None
    _frontier: Frontier
    _lanes: RequestLanes
    book: PageTracker
    _take: Callable[[], Lease | None]
    _unseen: Callable[[Request], bytes | None]

    def open(self, spider: Spider) -> Deferred[None] | None:
        """Make queue and dupefilter, hook into the engine and begin to exchange. A wrong configuration is logged in one line,
        and the crawl ends.
        """
        self._crawler = crawler = running_crawler(spider)
        if crawler is None:
            return super().open(spider)
        self.spider = spider
        self._seen: set[bytes] = set()
        self._kept = UnstorableRequests()
        self._unasked = UnstorableRequests()
        try:
            with refusing(crawler):
                self._make_parts()
                self._set_up(crawler)
        except CloseSpider as closing:
            # Raised here it would leave the scraper unopened, and Scrapy stumble over that when it closes.
            def close_at_once(exc: CloseSpider = closing) -> None:
                raise exc

            crawler.signals.connect(close_at_once, signals.spider_opened, weak=False)
            return None
        if self.flush_on_start:
            self.flush()
        crawler.signals.connect(self.book.fail_item, signals.item_error)
        if why := why_never_started(crawler.spidercls):
            logger.warning("%s", why)
        self._frontier.open()
        return self.df.open() if is_scrapys_kind(self.df) else None

    def _set_up(self, crawler: Crawler) -> None:
        """Make the parts. Raises IncompatibleEngine, ConfigError; the frontier comes last, since it would have to be stopped
        again.
        """
        settings = crawler.settings
        forgets = is_fused(type(self.df)) and self.df.filter.forgets  # what expires in Redis, or has to be seen each time
        self._max_seen = 0 if forgets else number_of(settings, "SCHEDULER_LOCAL_SEEN", defaults.SCHEDULER_LOCAL_SEEN)
        self._unseen = self._fingerprint_here
        self.stats = self.stats or crawler.stats
        assert self.stats is not None
        self._inc_value = self.stats.inc_value
        self._frontier = frontier_of(crawler, self._adapted)
        self._owner = self._frontier.owner
        self._take = self._frontier.take
        self.book = PageTracker(crawler, self._frontier, self._inc_value)
        self._pages = self.book.pages
        self._lanes = RequestLanes(self._frontier, self.book)
        listeners = self._frontier.listeners
        self._wake = watch_finished(crawler, self.book.finish, begun=self.book.begin, failed=self.book.fail)
        check_when_sent(crawler, self.book.is_late, self._frontier.find_place, self.book.leave_unsent)
        send_at_once(crawler, self.book)
        self.ages = PageAges(crawler, self._frontier, self.book, self._inc_value)
        listeners.work = self._first_work
        listeners.duplicate = self._known_to_redis
        listeners.names = self._names_of
        listeners.limits = self._lanes.leave_alone
        listeners.places = free_places(crawler)
        listeners.applied.append(self._hold_back)
        listeners.fenced = self._fenced
        listeners.refused = self._refused
        listeners.left = self._left
        self._set_up_custom_classes(crawler)
        if (by := self._frontier.config.turn_by) and self._custom_queue is None:
            self._places = self.book.places = SiteSlots(by, cast("RedisMixin", self.spider).most_at_once, self._frontier)
            listeners.room = self._places.room
            self._long_waits = LongWaits(downloader_of(crawler), self._wake, self._frontier.now)

    def _set_up_custom_classes(self, crawler: Crawler) -> None:
        frontier, listeners = self._frontier, self._frontier.listeners
        if not is_fused(type(self.df)):
            assert crawler.request_fingerprinter is not None
            fingerprint = crawler.request_fingerprinter.fingerprint
            self._custom_dupefilter = CustomDupeFilter(self.df, self.server, frontier, fingerprint)
            self._unseen = self._custom_dupefilter.check
            listeners.applied.append(self._ask_again)
        if frontier.config.order is QueueOrder.ADVISED:
            self._custom_queue = queue = CustomQueue(self.queue, frontier, self._codec, keep=self._keep_here)
            self._codec, self._take = cast("Codec", queue), queue.take
            listeners.applied.append(queue.applied)

    def enqueue_request(self, request: Request) -> bool:
        """Hand a request to the frontier. Never raises: a hundred exceptions here would wedge the engine for ever."""
        if self._crawler is None:
            return super().enqueue_request(request)
        try:
            fingerprint = NO_FILTER if request.dont_filter else self._unseen(request)
            if fingerprint is None:
                self._filtered(request)
                return False
            score = score_of(request.priority) if self._own_score is None else self._score(request)
            stored = NewRequest(fingerprint, score, self._codec.encode(request), *self._lanes.pace_of(request))
        except OUTAGES:  # of a dupefilter class of the user's; crawled unasked, each link back would be crawled again
            self._unasked.wait(request)
            return True
        except Exception as exc:  # Unserializable; or a class of the user's that raises, which must not wedge the engine
            self._keep_here(request, in_words(exc))
            return True
        self._frontier.add_request(stored)
        self._inc_value("scheduler/enqueued/redis")
        self._inc_value("scheduler/enqueued")
        return True

    def _fingerprint_here(self, request: Request) -> bytes | None:
        """Return None where this process has met the request; else the fingerprint by which Redis is asked, in the exchange that
        stores it.
        """
        fingerprint: bytes = self.df.fingerprint(request)
        if fingerprint in self._seen:
            return None
        if self._max_seen:
            if len(self._seen) >= self._max_seen:
                self._seen.clear()
            self._seen.add(fingerprint)
        return fingerprint

    def _ask_again(self, *_: object) -> None:
        """Ask the dupefilter about the requests that waited for Redis."""
        assert self._custom_dupefilter is not None
        self._custom_dupefilter.resume()
        enqueue = partial(Scheduler.enqueue_request, self)  # an overridden one has run already
        if self._unasked and self._unasked.enqueue_again(enqueue, self._frontier):
            self._wake()

    def _keep_here(self, request: Request, reason: str) -> None:
        self._kept.add(request, reason)
        self._inc_value("scheduler/unserializable")
        self._inc_value("scheduler/enqueued")

    def next_request(self) -> Request | None:
        """Return the next request of this process, or None; the engine is woken when there is one."""
        if self._crawler is None:
            return super().next_request()
        if self._kept and (kept := self._kept.take(but_not=self._is_held)):
            self._inc_value("scheduler/dequeued")
            request, found_on = kept
            if found_on is not None:
                self._pages[request] = found_on
                found_on.seen_at = self._frontier.now()
            return request
        while (lease := self._take()) is not None:
            try:
                request = self._codec.decode(lease.data)
            except Undecodable as exc:
                logger.error("a request is set aside in %s: %s", self._frontier.config.keys.dead(), exc)
                self._inc_value("scheduler/undecodable")
                self._frontier.free_time(lease.id)
                self._frontier.bury(lease.id, str(exc))
                continue
            if self._lanes.shelves(lease, request):
                continue
            site = ""
            if self._places is not None:
                site = self._places.name_of(request.meta, request.url)
                if site and not self._places.enter(site):
                    if lease.lane:  # its time would be over
                        self._frontier.refuse(lease)
                    else:
                        self._frontier.defer(lease, site)
                    continue
                if self._long_waits is not None:
                    self._long_waits.begin()
            self._pages[request] = Page(
                lease.id, request, site, lease.attempts, lease.until, self._frontier.now(), lane=lease.lane
            )
            self._inc_value("scheduler/dequeued/redis")
            self._inc_value("scheduler/dequeued")
            return request
        return None

    def has_pending_requests(self) -> bool:
        """Return False only when Redis has proved that nothing is ready, leased, or on its way in any process, for
        `idle_before_close` seconds.
        """
        if self._crawler is None:
            return super().has_pending_requests()
        in_custom_queue = self._custom_queue is not None and not self._custom_queue.is_dry
        if self._kept or self._unasked or not self._frontier.idle or in_custom_queue:
            self._idle_since = None
            return True
        return bool(self.idle_before_close) and not self._was_idle_for_long()

    def _was_idle_for_long(self) -> bool:
        if self._idle_since is None:
            self._idle_since = self._frontier.now()
            call_later(self.idle_before_close + 0.01, self._wake)
        return self._frontier.now() - self._idle_since >= self.idle_before_close

    def __len__(self) -> int:
        """Return the number of requests not started by any process, as of the last reply of Redis."""
        if self._crawler is None:
            return super().__len__()
        in_custom_queue = len(self._custom_queue) if self._custom_queue is not None else 0
        return self._frontier.waiting_to_start + self._frontier.parked + len(self._kept) + len(self._unasked) + in_custom_queue

    def _first_work(self) -> None:
        """Log requests that an earlier run left; the first exchange only introduces this process, so they were there before."""
        if self._frontier.exchanges == 1 and (waiting := self._frontier.waiting_to_start):
            self._log_resuming(waiting)
        self._frontier.listeners.work = self._wake
        self._wake()

    def _filtered(self, request: Request) -> None:
        """Log and count a duplicate; a user's own dupefilter may count it itself, as Scrapy's does."""
        assert self.stats is not None
        counted = self.stats.get_value("dupefilter/filtered", 0)
        log_duplicate(self.df, request, self.spider)
        if self.stats.get_value("dupefilter/filtered", 0) == counted:
            self._inc_value("dupefilter/filtered")

    def _known_to_redis(self, payload: bytes) -> None:
        assert self._crawler is not None
        request = self._codec.decode(payload if self._custom_queue is None else self._custom_queue.payload_of(payload))
        self._filtered(request)
        self._crawler.signals.send_catch_log(signals.request_dropped, request=request, spider=self.spider)

    def _names_of(self, payload: bytes) -> Iterator[str]:
        try:
            request = self._codec.decode(payload)
        except Undecodable:  # `next_request` sets it aside
            return iter(())
        return names_of(request.meta.get("site"), request.url)

    def _is_held(self, request: Request) -> bool:
        """Return True if this request must not be sent now."""
        return self._frontier.holds.keeps_back(names_of(request.meta.get("site"), request.url))

    def _hold_back(self, *_: object) -> None:
        """Take back held requests that wait in the downloader for their turn."""
        holds = self._frontier.holds
        if holds.paused or holds.sites:
            self.book.take_back(self._is_held)

    def _fenced(self) -> None:
        for page in (*self._pages.values(), *self._kept.pages, *self._unasked.pages):
            page.lease_id = ""
        self._seen.clear()
        for custom in (self._custom_queue, self._custom_dupefilter):
            if custom is not None:
                custom.fenced()
        self._wake()

    def _refused(self, error: TrawlError) -> None:
        assert self._crawler is not None
        logger.error("%s", error)
        fail(self._crawler)
        stop_crawl(self._crawler, REASON)

    def give_back(self) -> Deferred[None] | None:
        """Close without waiting for the pages at work: their leases are given back, unharmed (edge d), for others to fetch."""
        if self._crawler is not None and not is_refused(self._crawler):
            for page in self._pages.values():
                page.release(self._frontier)
        return self.close("shutdown")

    def close(self, reason: str) -> Deferred[None] | None:
        """Release requests that were not started and wait until everything is stored, for a bounded time."""
        if self._crawler is None:
            return super().close(reason)
        if is_refused(self._crawler):
            if hasattr(self, "_frontier"):
                self._frontier.stop()
            return None
        hand_over = getattr(self.spider, "hand_over_open_task", None)
        if hand_over is not None:
            hand_over()
        for kept in (self._kept, self._unasked):
            kept.release_pages(self._frontier)
        if self._custom_queue is not None:
            self._custom_queue.release_unstarted()
        closing = close_frontier(self._crawler)
        if is_scrapys_kind(self.df):
            closing.addCallback(lambda _: self.df.close(reason))
        return closing

    def _left(self) -> None:
        """Remove the keys of a finished crawl as its last process, with SCHEDULER_PERSIST=False; never while others
        work on it.
        """
        try:
            if self._custom_dupefilter is not None:
                self._custom_dupefilter.leave()
            if not self.persist and self._frontier.idle:
                self._owner = self._frontier.owner
                self.flush()
        except Exception as exc:  # Redis, or any error of a class of the user's: this process must be able to go
            logger.warning("the finished crawl's keys are not removed: %s: %s", type(exc).__name__, exc)


def scheduler_of(crawler: Crawler) -> Scheduler | None:
    """Return the crawl's scheduler; None where it is of another class, or not made yet."""
    scheduler = running_scheduler(crawler)
    # isinstance() is true for everything that has its methods
    return cast("Scheduler", scheduler) if Scheduler in type(scheduler).__mro__ else None


def set_aside(crawler: Crawler, request: Request, reason: str) -> None:
    """Keep a request among the dead ones with the reason; under another scheduler than ours do nothing."""
    if (book := tracker_of(crawler)) is not None:
        book.give_up(request, reason)
