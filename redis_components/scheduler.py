"""Scrapy's scheduler on the shared frontier: synchronous, never waiting for Redis.

    SCHEDULER = "redis_components.scheduler.Scheduler"

Constructor and attributes are scrapy-redis's. Used alone (in a script or a test, without a running engine) it is what
scrapy-redis's is: a synchronous queue behind a dupefilter.
"""

from __future__ import annotations

import logging
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self, cast

import redis
from scrapy import Request, Spider, signals
from scrapy.core.scheduler import BaseScheduler
from scrapy.exceptions import CloseSpider, ScrapyDeprecationWarning
from scrapy.settings import BaseSettings
from scrapy.utils.asyncio import call_later

from . import connection, defaults
from .custom_dupefilter import CustomDupeFilter
from .custom_queue import TOKEN, CustomQueue
from .engine import close_frontier, frontier_of, running_crawler, stop_crawl, watch_finished
from .errors import TrawlError, Undecodable, Unserializable
from .exchange import NO_FILTER, NewRequest, Order, exact_score, score_of
from .inspector import wipe
from .kept_requests import KeptRequests
from .keys import CrawlKeys
from .loading import loaded
from .namespace import checked
from .page import Page
from .page_book import PageBook
from .queue import Base, order_of, own_codec_of, own_score_of
from .refusal import REASON, is_refused, refusing
from .request_codec import request_codec
from .scheduler_parts import (
    arguments_of,
    clears_by_itself,
    is_checked_in_exchange,
    is_scrapys_kind,
    log_duplicate,
    make_dupefilter,
    make_queue,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy.crawler import Crawler
    from scrapy.statscollectors import StatsCollector
    from twisted.internet.defer import Deferred

    from .exchange import Lease
    from .frontier import Frontier, FrontierConfig
    from .request_codec import Codec

logger = logging.getLogger(__name__)


class Scheduler(BaseScheduler):
    """Leases requests from the frontier and acks each when Scrapy is done with it."""

    spider: Spider
    queue: Any
    stats: StatsCollector | None = None
    _unfit: TrawlError | None = None
    _crawler: Crawler | None = None  # whose engine is at work; None: this scheduler is used alone
    _custom_queue: CustomQueue | None = None
    _custom_dupefilter: CustomDupeFilter | None = None
    _idle_since: float | None = None
    _frontier: Frontier
    _book: PageBook
    _codec: Codec
    _take: Callable[[], Lease | None]

    def __init__(
        self,
        server: redis.Redis,
        persist: bool = False,
        flush_on_start: bool = False,
        queue_key: str = defaults.SCHEDULER_QUEUE_KEY,
        queue_cls: Any = defaults.SCHEDULER_QUEUE_CLASS,
        dupefilter: Any = None,
        dupefilter_key: str = defaults.SCHEDULER_DUPEFILTER_KEY,
        dupefilter_cls: Any = defaults.SCHEDULER_DUPEFILTER_CLASS,
        idle_before_close: int = 0,
        serializer: Any = None,
    ) -> None:
        """scrapy-redis's arguments: classes and serializer as objects or dotted paths, `idle_before_close` in seconds.

        Raises TypeError for a negative `idle_before_close`.
        """
        if idle_before_close < 0:
            raise TypeError("idle_before_close cannot be negative")
        self.server = server
        self.persist = persist
        self.flush_on_start = flush_on_start
        self.queue_key = queue_key
        self.queue_cls = queue_cls
        self.df = dupefilter
        self.dupefilter_cls = dupefilter_cls
        self.dupefilter_key = dupefilter_key
        self.idle_before_close = idle_before_close
        self.serializer = serializer
        self._seen: set[bytes] = set()
        self._kept = KeptRequests()

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> Self:
        """Read the settings; nothing is sent to Redis yet. Raises ConfigError."""
        return cls(server=connection.from_settings(settings), **arguments_of(settings))

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """The same, with the crawler's stats. What is wrong is said in `open`: here only a traceback could tell it."""
        try:
            instance = cls.from_settings(crawler.settings)
        except TrawlError as error:
            instance = cls(server=None)  # type: ignore[arg-type]  # it will not be used
            instance._unfit = error
        instance.stats = crawler.stats
        return instance

    def open(self, spider: Spider) -> Deferred[None] | None:
        """Make queue and dupefilter, hook into the engine and begin to exchange. What cannot work as configured is said in one
        line, and the crawl ends.
        """
        self.spider = spider
        self._crawler = crawler = running_crawler(spider)
        if crawler is None:
            self._make_parts()
            if self.flush_on_start:
                self.flush()
            self._say_resuming(len(self.queue))
            return None
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
        crawler.signals.connect(self._book.fail_item, signals.item_error)
        self._frontier.open()
        return self.df.open() if is_scrapys_kind(self.df) else None

    def _make_parts(self) -> None:
        """Raises ConfigError."""
        if self._unfit:
            raise self._unfit
        settings = getattr(self.spider, "settings", None) or BaseSettings()
        self.serializer = loaded(self.serializer, "SCHEDULER_SERIALIZER")
        codec = request_codec(self.spider, self.serializer, settings.getlist("SCHEDULER_REQUEST_CLASSES"))
        self._keys = CrawlKeys.for_spider(
            self.spider.name,
            namespace=checked(settings.get("REDIS_NAMESPACE") or "", "REDIS_NAMESPACE"),
            requests=self.queue_key,
            dupefilter=self.dupefilter_key,
        )
        self.queue = make_queue(
            self.queue_cls, server=self.server, spider=self.spider, key=self._keys.requests, serializer=self.serializer
        )
        if isinstance(self.queue, Base):
            self.queue.use_codec(codec)
        self._codec = own_codec_of(self.queue) or codec
        if self.df is None:
            self.df = make_dupefilter(self.dupefilter_cls, self.spider)
        self._keys = replace(  # a subclass of ours may have changed its key
            self._keys,
            requests=getattr(self.queue, "key", self._keys.requests),
            dupefilter=self.df.key if is_checked_in_exchange(self.df) else self._keys.dupefilter,
            set_aside=order_of(type(self.queue)) is None,
        )

    def _set_up(self, crawler: Crawler) -> None:
        """Raises IncompatibleEngine, ConfigError; the frontier comes last, since it would have to be stopped again."""
        settings = crawler.settings
        self._max_seen = settings.getint("SCHEDULER_LOCAL_SEEN", defaults.SCHEDULER_LOCAL_SEEN)
        self._own_score = own_score_of(self.queue)
        self.stats = self.stats or crawler.stats
        assert self.stats is not None
        self._inc_value = self.stats.inc_value
        self._frontier = frontier_of(crawler, self._adapted)
        if self._frontier.config.filter.forgets:
            self._max_seen = 0  # what expires in Redis must not be remembered here, and what is met again has to be told there
        self._take = self._frontier.take
        self._book = PageBook(crawler, self._frontier, self._inc_value)
        self._pages = self._book.pages
        listeners = self._frontier.listeners
        self._wake = watch_finished(crawler, self._book.finish, begun=self._book.begin, failed=self._book.fail)
        listeners.work = self._first_work
        listeners.duplicate = self._known_to_redis
        listeners.forgotten = self._seen.clear
        listeners.fenced = self._fenced
        listeners.refused = self._refused
        listeners.left = self._left
        self._set_up_custom_classes(crawler)

    def _adapted(self, config: FrontierConfig) -> FrontierConfig:
        """Keys and order are those of the queue and the dupefilter."""
        ours = self._keys
        keys = replace(config.keys, requests=ours.requests, dupefilter=ours.dupefilter, set_aside=ours.set_aside)
        seen_in = self.df.filter if is_checked_in_exchange(self.df) else config.filter
        return replace(config, keys=keys, order=order_of(type(self.queue)) or Order.ADVISED, filter=seen_in)

    def _set_up_custom_classes(self, crawler: Crawler) -> None:
        frontier, listeners = self._frontier, self._frontier.listeners
        if not is_checked_in_exchange(self.df):
            assert crawler.request_fingerprinter is not None
            fingerprint = crawler.request_fingerprinter.fingerprint
            self._custom_dupefilter = CustomDupeFilter(self.df, self.server, frontier, fingerprint)
            listeners.applied.append(self._custom_dupefilter.applied)
        if frontier.config.order is Order.ADVISED:
            self._custom_queue = queue = CustomQueue(self.queue, frontier, self._codec, keep=self._keep_here)
            self._codec, self._take = cast("Codec", queue), queue.take
            listeners.applied.append(queue.applied)

    def flush(self) -> None:
        """Delete the queue and the dupefilter, unless another process is crawling with them."""
        owner = "" if self._crawler is None else self._frontier.owner
        has_own_keys = clears_by_itself(self.df)
        outcome = wipe(self.server, self._keys, but_not_for=owner, fingerprints=not has_own_keys)
        if outcome == "wiped":
            for part in (self.queue,) * self._keys.set_aside + (self.df,) * has_own_keys:
                part.clear()
        (logger.info if outcome == "wiped" else logger.warning)("flush: %s", outcome)

    def enqueue_request(self, request: Request) -> bool:
        """Hand a request to the frontier. Never raises: a hundred exceptions here would wedge the engine for ever. (Used alone it
        raises what queue, dupefilter or Redis raise.)
        """
        if self._crawler is None:
            return self._enqueue_alone(request)
        noted = None
        try:
            fingerprint = NO_FILTER
            if not request.dont_filter:
                if self._custom_dupefilter is not None:
                    noted = self._custom_dupefilter.note_unless_seen(request)
                    is_seen = noted is None
                else:
                    fingerprint = self.df.fingerprint(request)
                    is_seen = self._seen_here(fingerprint)
                if is_seen:
                    self._filtered(request)
                    return False
            score = score_of(request.priority) if self._own_score is None else exact_score(self._own_score(request))
            stored = NewRequest(fingerprint, score, self._codec.encode(request))
        except Exception as exc:  # Unserializable; or a class of the user's that raises, which is no reason to wedge the engine
            self._keep_here(request, str(exc) if isinstance(exc, Unserializable) else f"{type(exc).__name__}: {exc}")
            return True
        if noted is not None and self._custom_dupefilter is not None:
            self._custom_dupefilter.store(noted, stored.payload)
        self._frontier.add_request(stored)
        self._inc_value("scheduler/enqueued/redis")
        self._inc_value("scheduler/enqueued")
        return True

    def _enqueue_alone(self, request: Request) -> bool:
        if not request.dont_filter and self.df.request_seen(request):
            log_duplicate(self.df, request, self.spider)
            return False
        self.queue.push(request)
        if self.stats:
            self.stats.inc_value("scheduler/enqueued/redis")
        return True

    def _seen_here(self, fingerprint: bytes) -> bool:
        """Whether this process has met the request; Redis is asked in the exchange that stores it."""
        if fingerprint in self._seen:
            return True
        if not self._max_seen:
            return False
        if len(self._seen) >= self._max_seen:
            self._seen.clear()
        self._seen.add(fingerprint)
        return False

    def _keep_here(self, request: Request, reason: str) -> None:
        self._kept.add(request, reason)
        self._inc_value("scheduler/unserializable")
        self._inc_value("scheduler/enqueued")

    def next_request(self) -> Request | None:
        """The next request of this process, or None; the engine is woken when there is one."""
        if self._crawler is None:
            return self._next_alone()
        if self._kept:
            self._inc_value("scheduler/dequeued")
            request, found_on = self._kept.take()
            if found_on is not None:
                self._pages[request] = found_on
            return request
        while (lease := self._take()) is not None:
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

    def _next_alone(self) -> Request | None:
        request: Request | None = self.queue.pop(self.idle_before_close)
        if request is not None:
            request.meta.pop(TOKEN, None)
            if self.stats:
                self.stats.inc_value("scheduler/dequeued/redis")
        return request

    def has_pending_requests(self) -> bool:
        """False only when Redis has proved that nothing is ready, leased by anybody, or on its way, and that for
        `idle_before_close` seconds. Used alone: whether something waits.
        """
        if self._crawler is None:
            return len(self) > 0
        if self._kept or not self._frontier.idle or (self._custom_queue is not None and not self._custom_queue.is_dry):
            self._idle_since = None
            return True
        return bool(self.idle_before_close) and not self._was_idle_for_long()

    def _was_idle_for_long(self) -> bool:
        now = self._frontier.now()
        if self._idle_since is None:
            self._idle_since = now
            call_later(self.idle_before_close + 0.01, self._wake)
        return now - self._idle_since >= self.idle_before_close

    def __len__(self) -> int:
        """Requests that nobody has started, at the last answer of Redis."""
        if self._crawler is None:
            return len(self.queue)
        in_custom_queue = len(self._custom_queue) if self._custom_queue is not None else 0
        return self._frontier.waiting_to_start + len(self._kept) + in_custom_queue

    def finish_request(self, request: Request) -> None:
        """Scrapy is done with `request`: ack it (edge c). The name is that of scrapy/scrapy#7978."""
        self._book.finish(request)

    def give_up(self, request: Request, reason: str) -> None:
        """When Scrapy is done with `request`, keep it among the dead ones with `reason` (edge f) instead of acking it."""
        self._book.give_up(request, reason)

    def _say_resuming(self, waiting: int) -> None:
        if waiting:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ScrapyDeprecationWarning)  # scrapy-redis's users may listen to it here
                self.spider.log(f"Resuming crawl ({waiting} requests scheduled)")

    def _first_work(self) -> None:
        """The first exchange only introduces this process, so what waits was there before."""
        if self._frontier.exchanges == 1:
            self._say_resuming(self._frontier.waiting_to_start)
        self._frontier.listeners.work = self._wake
        self._wake()

    def _filtered(self, request: Request) -> None:
        log_duplicate(self.df, request, self.spider)
        self._inc_value("dupefilter/filtered")

    def _known_to_redis(self, payload: bytes) -> None:
        assert self._crawler is not None
        request = self._codec.decode(payload if self._custom_queue is None else self._custom_queue.payload_of(payload))
        self._filtered(request)
        self._crawler.signals.send_catch_log(signals.request_dropped, request=request, spider=self.spider)

    def _fenced(self) -> None:
        for page in (*self._pages.values(), *self._kept.pages):
            page.lease_id = ""
        self._seen.clear()
        if self._custom_queue is not None:
            self._custom_queue.fenced()
        self._wake()

    def _refused(self, error: TrawlError) -> None:
        assert self._crawler is not None
        logger.error("%s", error)
        stop_crawl(self._crawler, REASON)

    def close(self, reason: str) -> Deferred[None] | None:
        """Release what was not started and wait until everything is stored, for a bounded time."""
        if self._crawler is None:
            if not self.persist:
                self.flush()
            return None
        if is_refused(self._crawler):
            if hasattr(self, "_frontier"):
                self._frontier.stop()
            return None
        hand_over = getattr(self.spider, "hand_over_open_task", None)
        if hand_over is not None:
            hand_over()
        self._kept.release_pages(self._frontier)
        if self._custom_queue is not None:
            self._custom_queue.release_unstarted()
        closing = close_frontier(self._crawler)
        if is_scrapys_kind(self.df):
            closing.addCallback(lambda _: self.df.close(reason))
        return closing

    def _left(self) -> None:
        """SCHEDULER_PERSIST=False: the last process of a finished crawl removes its keys; never what others work on."""
        try:
            if self._custom_dupefilter is not None:
                self._custom_dupefilter.leave()
            if not self.persist and self._frontier.idle:
                self.flush()
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
