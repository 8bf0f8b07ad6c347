"""Scrapy's scheduler on the shared frontier: synchronous, never waiting for Redis.

SCHEDULER = "redis_components.scheduler.Scheduler"
"""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING, Self, cast

import redis
from scrapy import Request, Spider, signals
from scrapy.core.scheduler import BaseScheduler
from scrapy.exceptions import CloseSpider
from scrapy.spidermiddlewares.httperror import HttpError
from scrapy.utils.asyncio import is_asyncio_available

from . import defaults
from .engine import close_frontier, frontier_of, stop_crawl, watch_finished
from .errors import TrawlError, Undecodable, Unserializable
from .exchange import NO_FILTER, NewRequest, score_of
from .inspector import wipe
from .loading import object_of
from .page import Page, current_page
from .refusal import REASON, is_refused, refusing
from .request_codec import request_codec

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from twisted.internet.defer import Deferred
    from twisted.python.failure import Failure

    from .frontier import Frontier

logger = logging.getLogger(__name__)


def reason_of(failure: Failure) -> str:
    """Why a request failed, for people: `HTTP 404`, or the error's name and text."""
    if isinstance(failure.value, HttpError):
        return f"HTTP {failure.value.response.status}"
    return f"{type(failure.value).__name__}: {failure.getErrorMessage()}"


class Scheduler(BaseScheduler):
    """Leases requests from the frontier and acks each when Scrapy is done with it.

    Leases are kept beside the requests, not in `meta`: copies, retries and redirects would carry them along and ack twice.
    """

    _frontier: Frontier

    def __init__(self, crawler: Crawler, *, persist: bool, flush_on_start: bool, max_seen: int) -> None:
        self._crawler = crawler
        self.persist = persist
        self.flush_on_start = flush_on_start
        self._max_seen = max_seen
        self._seen: set[bytes] = set()
        self._pages: dict[Request, Page] = {}
        self._unserializable: deque[tuple[Request, Page | None]] = deque()
        self._reasons: set[str] = set()
        assert crawler.stats is not None
        self.stats = crawler.stats
        self._inc_value = crawler.stats.inc_value
        self._has_contexts = False

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Read the settings; nothing is sent to Redis yet."""
        settings = crawler.settings
        return cls(
            crawler,
            persist=settings.getbool("SCHEDULER_PERSIST", defaults.SCHEDULER_PERSIST),
            flush_on_start=settings.getbool("SCHEDULER_FLUSH_ON_START"),
            max_seen=settings.getint("SCHEDULER_LOCAL_SEEN", defaults.SCHEDULER_LOCAL_SEEN),
        )

    def open(self, spider: Spider) -> None:
        """Hook into the engine and begin to exchange. What cannot work as configured is said in one line, and the crawl ends."""
        self.spider = spider
        try:
            with refusing(self._crawler):
                self._set_up(spider)
        except CloseSpider as closing:
            # Raised here it would leave the scraper unopened, and Scrapy stumble over that when it closes.
            def close_at_once(exc: CloseSpider = closing) -> None:
                raise exc

            self._crawler.signals.connect(close_at_once, signals.spider_opened, weak=False)
            return
        if self.flush_on_start:
            self.flush()
        self._crawler.signals.connect(self._item_failed, signals.item_error)
        self._frontier.open()

    def _set_up(self, spider: Spider) -> None:
        """Raises IncompatibleEngine, ConfigError; the frontier comes last, since it would have to be stopped again."""
        settings = self._crawler.settings
        self._codec = request_codec(
            spider, object_of(settings, "SCHEDULER_SERIALIZER"), settings.getlist("SCHEDULER_REQUEST_CLASSES")
        )
        dupefilter = object_of(settings, "DUPEFILTER_CLASS")
        if not hasattr(dupefilter, "fingerprint"):  # Scrapy's default, or a filter that knows no fingerprints: ours stands in
            dupefilter = object_of(settings, "SCHEDULER_DUPEFILTER_CLASS", defaults.SCHEDULER_DUPEFILTER_CLASS)
        self._frontier = frontier_of(self._crawler)
        self._has_contexts = is_asyncio_available()
        self.df = dupefilter.from_crawler(self._crawler)
        listeners = self._frontier.listeners
        listeners.work = self._wake = watch_finished(
            self._crawler, self.finish_request, begun=self._begin_request, failed=self._request_failed
        )
        listeners.duplicate = self._known_to_redis
        listeners.fenced = self._fenced
        listeners.refused = self._refused
        listeners.left = self._wipe_if_finished

    def flush(self) -> None:
        """Delete the queue and the dupefilter, unless another process is crawling with them."""
        outcome = wipe(self.df.server, self._frontier.config.keys, but_not_for=self._frontier.owner)
        (logger.info if outcome == "wiped" else logger.warning)("flush: %s", outcome)

    def enqueue_request(self, request: Request) -> bool:
        """Hand a request to the frontier. Never raises: a hundred exceptions here would wedge the engine for ever."""
        try:
            fingerprint = NO_FILTER if request.dont_filter else self.df.fingerprint(request)
            if not request.dont_filter and self._seen_here(fingerprint):
                self._filtered(request)
                return False
            stored = NewRequest(fingerprint, score_of(request.priority), self._codec.encode(request))
        except Exception as exc:  # Unserializable; or a class of the user's that raises, which is no reason to wedge the engine
            self._keep_here(request, str(exc) if isinstance(exc, Unserializable) else f"{type(exc).__name__}: {exc}")
            return True
        self._frontier.add_request(stored)
        self._inc_value("scheduler/enqueued/redis")
        self._inc_value("scheduler/enqueued")
        return True

    def _seen_here(self, fingerprint: bytes) -> bool:
        """Whether this process has met the request; Redis is asked in the exchange that stores it."""
        if fingerprint in self._seen:
            return True
        if len(self._seen) >= self._max_seen:
            self._seen.clear()
        self._seen.add(fingerprint)
        return False

    def _keep_here(self, request: Request, reason: str) -> None:
        """A request that cannot be stored lives in this process's memory, like in Scrapy's own scheduler; the page on which it
        was found stays leased until it is finished.
        """
        field = reason.partition(":")[0]
        if field not in self._reasons:
            self._reasons.add(field)
            logger.warning(
                "%s is kept in memory, after a crash its page is crawled again: %s (said once for each field)", request, reason
            )
        found_on = current_page.get()
        if found_on is not None:
            found_on.parts += 1
        self._unserializable.append((request, found_on))
        self._inc_value("scheduler/unserializable")
        self._inc_value("scheduler/enqueued")

    def next_request(self) -> Request | None:
        """The next request of this process, or None; the engine is woken when there is one."""
        if self._unserializable:
            self._inc_value("scheduler/dequeued")
            request, found_on = self._unserializable.popleft()
            if found_on is not None:
                self._pages[request] = found_on
            return request
        while (lease := self._frontier.take()) is not None:
            try:
                request = self._codec.decode(lease.data)
            except Undecodable as exc:
                logger.error("a request is set aside in %s: %s", self._frontier.config.keys.dead(), exc)
                self._inc_value("scheduler/undecodable")
                self._frontier.bury(lease.id, str(exc))
                continue
            self._pages[request] = Page(lease.id, request)
            self._inc_value("scheduler/dequeued/redis")
            self._inc_value("scheduler/dequeued")
            return request
        return None

    def has_pending_requests(self) -> bool:
        """False only when Redis has proved that nothing is ready, leased by anybody, or on its way."""
        return bool(self._unserializable) or not self._frontier.idle

    def __len__(self) -> int:
        """Requests that nobody has started, at the last answer of Redis."""
        return self._frontier.waiting_to_start + len(self._unserializable)

    def finish_request(self, request: Request) -> None:
        """Scrapy is done with `request`: ack it (edge c). The name is that of scrapy/scrapy#7978."""
        page = self._pages.pop(request, None)
        if page is not None and page.finish_part(self._frontier) and page.reason is not None and not page.cut_off:
            logger.error("%s is set aside in %s: %s", request, self._frontier.config.keys.dead(), page.reason)
            self._inc_value("scheduler/given_up")

    def give_up(self, request: Request, reason: str) -> None:
        """When Scrapy is done with `request`, keep it among the dead ones with `reason` (edge f) instead of acking it."""
        page = self._pages.get(request)
        if page is not None:
            page.give_up(request, reason)

    def _begin_request(self, request: Request) -> None:
        if self._has_contexts:
            current_page.set(self._pages.get(request))

    def _request_failed(self, request: Request, failure: Failure) -> None:
        """A callback that raised: the page is kept, to be replayed once that is mended. CloseSpider is no failure of the page,
        which was not read to its end: it is released (edge d), so that a later run crawls it again.
        """
        if isinstance(failure.value, CloseSpider):
            self._cut_off(request)
        else:
            self.give_up(request, reason_of(failure))

    def _item_failed(self, failure: Failure, response: Response | None) -> None:
        """An item that no pipeline took."""
        request = getattr(response, "request", None)  # items of start() have no response
        if request is None:
            return
        if isinstance(failure.value, CloseSpider):
            # Scrapy itself only logs it here. The page goes back to the queue, so this process must not take it again.
            self._cut_off(request)
            stop_crawl(self._crawler, failure.value.reason)
        else:
            self.give_up(request, reason_of(failure))

    def _cut_off(self, request: Request) -> None:
        page = self._pages.get(request)
        if page is not None:
            page.cut_off = True

    def _filtered(self, request: Request) -> None:
        self.df.log(request, self.spider)
        self._inc_value("dupefilter/filtered")

    def _known_to_redis(self, payload: bytes) -> None:
        request = self._codec.decode(payload)
        self._filtered(request)
        self._crawler.signals.send_catch_log(signals.request_dropped, request=request, spider=self.spider)

    def _fenced(self) -> None:
        for page in (*self._pages.values(), *self._kept_from()):
            page.lease_id = ""
        self._seen.clear()
        self._wake()

    def _refused(self, error: TrawlError) -> None:
        logger.error("%s", error)
        stop_crawl(self._crawler, REASON)

    def close(self, reason: str) -> Deferred[None] | None:  # noqa: ARG002
        """Release what was not started and wait until everything is stored, for a bounded time."""
        if is_refused(self._crawler):
            if hasattr(self, "_frontier"):
                self._frontier.stop()
            return None
        hand_over = getattr(self.spider, "hand_over_open_task", None)
        if hand_over is not None:
            hand_over()
        if self._unserializable:
            pages = self._kept_from()
            logger.warning(
                "%d requests that could not be stored end with this process; the %d pages they came from will be crawled again",
                len(self._unserializable),
                len(pages),
            )
            for page in pages:
                page.release(self._frontier)
        return close_frontier(self._crawler)

    def _kept_from(self) -> set[Page]:
        """The pages of the requests that wait in memory."""
        return {page for _, page in self._unserializable if page is not None}

    def _wipe_if_finished(self) -> None:
        """SCHEDULER_PERSIST=False: the last process of a finished crawl removes its keys; never what others work on."""
        if self.persist or not self._frontier.idle:
            return
        try:
            wipe(self.df.server, self._frontier.config.keys, but_not_for=self._frontier.owner)
        except redis.RedisError as exc:
            logger.warning("the finished crawl's keys are not removed: %s", exc)


def scheduler_of(crawler: Crawler) -> Scheduler | None:
    """The crawl's scheduler; None where that is another one than ours, or there is none yet."""
    scheduler = crawler.engine.scheduler if crawler.engine else None
    # isinstance() is true for whatever has its methods
    return cast("Scheduler", scheduler) if Scheduler in type(scheduler).__mro__ else None


def set_aside(crawler: Crawler, request: Request, reason: str) -> None:
    """Keep a request among the dead ones with the reason; under another scheduler than ours do nothing."""
    if (scheduler := scheduler_of(crawler)) is not None:
        scheduler.give_up(request, reason)
