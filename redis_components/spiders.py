"""Spiders that are fed from Redis, continuously: a slow page never holds back the next start task.

The names are scrapy-redis's. In a crawl under our scheduler `start()` leases start tasks; the methods that pop them
(`start_tasks/scrapy_redis_api.py`) serve spiders that override them, other schedulers, and calls outside of a crawl.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Self

from scrapy import Request, Spider, signals
from scrapy.exceptions import CloseSpider, DontCloseSpider
from scrapy.spiders import CrawlSpider
from scrapy.utils.defer import deferred_from_coro
from twisted.internet.defer import CancelledError, Deferred

from . import connection, defaults
from .errors import ConfigError
from .scheduler import scheduler_of, set_aside
from .scrapy_glue.engine import is_one_page, refusing, stop_crawl
from .scrapy_glue.failure_reasons import reason_of
from .server.names import namespace_of, prefixed
from .start_tasks.feed import Feeding, TaskFeed, request_of
from .start_tasks.scrapy_redis_api import SynchronousTasks
from .start_tasks.seeding import read

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings
    from twisted.python.failure import Failure

logger = logging.getLogger(__name__)


class RedisMixin(SynchronousTasks, Feeding):
    """Reads start tasks from `redis_key` (a list, set or zset) for as long as the crawl lives; from several keys, the most
    urgent first, where it is a list of keys.

    A start task is leased until the requests made from it are in the frontier; one that cannot be understood is set aside with
    the reason. Mix it into a spider, and call `setup_redis` once the spider has its crawler.
    """

    redis_encoding: Any = None
    spider_idle_start_time = int(time.time())
    lane_later: ClassVar[bool] = False
    """Read a second start key, `<key>:later`, when the first one (or the several of `redis_key`) has no tasks."""
    turn_by: ClassVar[str] = ""
    """Field whose values take turns, such as `site`: of a start task (JSON), and of a request's `meta`; `host` is read out of the
    URL where there is no such field. A value with many start tasks waiting, or whose pages take long, then holds back no other
    one. "": start tasks are taken as they come.
    """
    newest_fields: ClassVar[tuple[str, ...]] = ()
    """Fields of start tasks (JSON) that one service feeds to another, the same for both spiders: what a wide one that waits gets
    from a newer one.
    """
    setup_error: ConfigError | None = None
    _others_to_meta = False
    _task_feed: TaskFeed | None = None
    _parallel: Deferred[None] | None = None

    def setup_redis(self, crawler: Crawler | None = None) -> None:
        """Read the settings that the spider does not set itself; a second call does nothing.

        Raises ValueError for an attribute or setting that is wrong, ConfigError for one of the connection. In a crawl neither:
        `setup_error` then ends it, in good order, when it begins.
        """
        if self.server is not None:
            return
        crawler = crawler or getattr(self, "crawler", None)
        if crawler is None:
            raise ValueError("crawler is required")
        try:
            self._read_settings(crawler.settings)
            self.server = connection.from_settings(crawler.settings)
        except (ValueError, ConfigError) as error:
            if crawler.crawling is not True:
                raise
            self.setup_error = ConfigError(str(error))
            return
        self._choose_type(crawler.settings)
        self._usual_fetch = self.fetch_data
        keys = ", ".join(self.start_keys)
        logger.info("start tasks come from %s (%d at a time, %s)", keys, self.redis_batch_size, self.redis_encoding)
        crawler.signals.connect(self.spider_idle, signal=signals.spider_idle)

    def _read_settings(self, settings: BaseSettings) -> None:
        if self.redis_key is None:
            self.redis_key = settings.get("REDIS_START_URLS_KEY", defaults.START_URLS_KEY)
        first, several = self._normalize_redis_key(self.redis_key)
        if self.lane_later:
            several = [*(several or [first]), f"{first}:later"]
        namespace = namespace_of(settings)
        self.redis_key = prefixed(first, namespace)
        self._redis_keys = several and [prefixed(key, namespace) for key in several]
        if self.redis_batch_size is None:
            self.redis_batch_size = settings.getint("CONCURRENT_REQUESTS", defaults.REDIS_CONCURRENT_REQUESTS)
        if self.redis_encoding is None:
            self.redis_encoding = settings.get("REDIS_ENCODING", defaults.REDIS_ENCODING)
        if (others := settings.get("START_TASK_UNKNOWN_FIELDS", "refuse")) not in ("refuse", "meta"):
            raise ValueError(f"START_TASK_UNKNOWN_FIELDS = {others!r} is neither refuse nor meta")
        self._others_to_meta = others == "meta"
        if self.max_idle_time is None:
            self.max_idle_time = settings.get("MAX_IDLE_TIME_BEFORE_CLOSE", defaults.MAX_IDLE_TIME)
        if self.redis_key_check_interval is None:
            self.redis_key_check_interval = settings.get("REDIS_KEY_CHECK_INTERVAL", defaults.REDIS_KEY_CHECK_INTERVAL) or 0
        for attribute, kind in (
            ("redis_batch_size", "an integer"),
            ("max_idle_time", "an integer"),
            ("redis_key_check_interval", "an integer or None"),
        ):
            try:
                setattr(self, attribute, int(getattr(self, attribute)))
            except (TypeError, ValueError):
                raise ValueError(f"{attribute} must be {kind}") from None

    def most_at_once(self, value: str) -> int | None:  # noqa: ARG002 - for subclasses
        """Return the number of requests with this value of `turn_by` that this process may send at a time; None: any number."""
        return None

    @property
    def start_keys(self) -> tuple[str, ...]:
        """The keys of the start tasks, the most urgent first; none before `setup_redis`."""
        return tuple(self._redis_keys or (self.redis_key,)) if self.server is not None else ()

    @property
    def fetches_itself(self) -> bool:
        """Return True if the spider fetches start tasks in its own way, by an overridden method or its own `fetch_data`."""
        return self._pops_itself or self._overrides("next_requests", "schedule_next_requests")

    @property
    def _pops_itself(self) -> bool:
        """Return True if `next_requests` reads tasks that are popped in the spider's own way instead of leased."""
        return self.fetch_data != self._usual_fetch or self._overrides("pop_list_queue", "pop_priority_queue")

    def _overrides(self, *methods: str) -> bool:
        return any(getattr(type(self), name) is not getattr(RedisMixin, name) for name in methods)

    async def start(self) -> AsyncIterator[Any]:
        """Yield the requests of one start task after the other; ends only when the whole crawl was idle for `max_idle_time`
        seconds (0: never).
        """
        if self.server is None:
            with refusing(self.crawler):
                never = f"{type(self).__name__} never called setup_redis(crawler): do so in its from_crawler"
                raise self.setup_error or ConfigError(never)
        is_ours = scheduler_of(self.crawler) is not None
        # Scrapy asks a spider whether it may close only after the end of this method.
        is_beside = self._parallel is not None or self._overrides("spider_idle")
        if is_ours and not is_beside:
            self._task_feed = TaskFeed(self)
        if not is_ours or self._overrides("start_requests"):
            for request in self._first_requests():
                yield request
        if not is_ours:
            return  # from now on `spider_idle` feeds
        feed = self._task_feed or self._feed_beside()
        if is_beside:
            return
        try:
            if self.fetches_itself:
                await feed.call_hooks()
            else:
                async for request in feed.requests():
                    yield request
        except CancelledError:  # the crawl ends; Twisted's is an Exception, which Scrapy would log as a fault of this method
            return
        logger.info("closing: the whole crawl was idle for %d s", self.max_idle_time)

    def start_requests(self) -> Iterable[Any]:
        """Yield one batch of start requests. In a crawl `start()` calls it only where it is overridden, before anything else."""
        return self.next_requests()

    def _first_requests(self) -> Iterator[Any]:
        try:
            yield from self.start_requests()
        except CloseSpider:
            raise
        except Exception:  # the user's own; the start tasks are crawled all the same
            logger.exception("start_requests() of %s failed", self)

    def next_requests(self) -> Iterator[Request]:
        """Yield the requests of the start tasks that are leased to this process at this moment; outside of a crawl, of a popped
        batch.
        """
        if scheduler_of(self.crawler) is None or self._pops_itself:
            return super().next_requests()
        return (self._task_feed or self._feed_beside()).leased_now()

    def spider_idle(self) -> None:
        """Refuse to close the crawl: raises DontCloseSpider unless all of it was idle for `max_idle_time` seconds."""
        if is_one_page(self):  # type: ignore[arg-type]  # mixed into a Spider
            return
        if scheduler_of(self.crawler) is None:
            self._fetch_when_idle()
            return
        if not (self._task_feed or self._feed_beside()).over:
            raise DontCloseSpider

    def _feed_beside(self) -> TaskFeed:
        """Feed while `start()` runs: it is the spider's own and does not read start tasks, or it has to end."""
        self._task_feed = feed = TaskFeed(self)
        self._parallel = deferred_from_coro(feed.parallel())
        self._parallel.addErrback(self._parallel_failed)
        self.crawler.signals.connect(self._stop_beside, signals.spider_closed)
        return feed

    def _parallel_failed(self, failure: Failure) -> None:
        error = failure.value
        if isinstance(error, CloseSpider):
            stop_crawl(self.crawler, error.reason)
        elif not isinstance(error, (CancelledError, asyncio.CancelledError)):
            logger.error("start tasks are not fed any more: %s", failure.getTraceback())

    def _stop_beside(self) -> None:
        if self._parallel is not None:
            self._parallel.cancel()

    def hand_over_open_task(self) -> None:
        """Enqueue the rest of the open start task when the crawl closes, as `start()` may never be resumed."""
        if self._task_feed is not None:
            self._task_feed.hand_over()

    def asked_at(self) -> float | None:
        """Return when Scrapy last asked `start()` for a request (s of the frontier's clock); None where it need not ask."""
        feed = self._task_feed
        if feed is None:
            return -math.inf if not self._overrides("start") else None  # an own one may have other things to do first
        return None if feed.over else feed.asked_at

    def return_open_task(self, why: str) -> None:
        """Give the start task back whose requests `start()` was not asked for, with an attempt counted."""
        if self._task_feed is not None:
            self._task_feed.return_open(why)

    def set_aside(self, failure: Failure) -> None:
        """Keep the failed request among the dead ones with the reason, to be replayed; an errback."""
        set_aside(self.crawler, failure.request, reason_of(failure))  # type: ignore[attr-defined]  # the engine puts it there

    def make_request_from_data(self, data: bytes) -> Request | Iterable[Request] | None:
        """Return the request or requests of a start task: a bare URL, or JSON with the fields of `StartTask`. Override it for
        other formats.

        An exception sets the task aside with that reason; but TaskMustWait gives it back, and parks it while its site is held.
        """
        task = read(data, self.redis_encoding, others_to_meta=self._others_to_meta)
        return request_of(task, self)  # type: ignore[arg-type]  # mixed into a Spider


class _SetUp(RedisMixin):
    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        """Make the spider as Scrapy does, then call `setup_redis`."""
        spider: Self = super().from_crawler(crawler, *args, **kwargs)  # type: ignore[misc]  # of a Spider
        spider.setup_redis(crawler)
        return spider


class RedisSpider(_SetUp, Spider):
    """A Spider fed from Redis."""


class RedisCrawlSpider(_SetUp, CrawlSpider):
    """A CrawlSpider fed from Redis."""
