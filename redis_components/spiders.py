"""Spiders that are fed from Redis, continuously: a slow page never holds back the next start task."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Self

import msgspec
from scrapy import Request, Spider
from scrapy.exceptions import CloseSpider
from scrapy.spiders import CrawlSpider
from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import CancelledError, Deferred

from . import defaults
from .engine import frontier_of
from .exchange import NextTask
from .namespace import prefixed
from .page import Page, current_page
from .scheduler import reason_of, set_aside

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from twisted.python.failure import Failure

    from .exchange import Lease

logger = logging.getLogger(__name__)


class StartTask(msgspec.Struct, forbid_unknown_fields=True):
    """A start task in JSON; a bare URL stands for `{"url": ...}`."""

    url: str
    method: str = "GET"
    headers: dict[str, str] = {}
    body: str = ""
    cookies: dict[str, str] = {}
    meta: dict[str, Any] = {}
    priority: int = 0
    dont_filter: bool = True


class RedisMixin:
    """Reads start tasks from `redis_key` (a list, set or zset) for as long as the crawl lives.

    A start task is leased until the requests made from it are in the frontier; one that cannot be understood is set aside with
    the reason.
    """

    name: str
    crawler: Crawler
    redis_key: str | None = None
    redis_batch_size: int | None = None
    max_idle_time: int | None = None
    _open_task: tuple[Page, Iterator[Request]] | None = None
    feeds: ClassVar[str | None] = None
    """Name of the spider whose start tasks this one makes; None: it makes none."""

    def setup_redis(self, crawler: Crawler) -> None:
        """Read the settings that the class does not set itself."""
        settings = crawler.settings
        key = self.redis_key or settings.get("REDIS_START_URLS_KEY", defaults.START_URLS_KEY)
        self.redis_key = key % {"name": self.name}
        if not self.redis_key.strip():
            raise ValueError("redis_key must not be empty")
        self.redis_key = prefixed(self.redis_key, settings.get("REDIS_NAMESPACE") or "")
        if self.redis_batch_size is None:
            self.redis_batch_size = settings.getint("CONCURRENT_REQUESTS", defaults.REDIS_CONCURRENT_REQUESTS)
        if self.max_idle_time is None:
            self.max_idle_time = settings.getint("MAX_IDLE_TIME_BEFORE_CLOSE", defaults.MAX_IDLE_TIME)
        for attribute in ("redis_batch_size", "max_idle_time"):
            try:
                setattr(self, attribute, int(getattr(self, attribute)))
            except (TypeError, ValueError):
                raise ValueError(f"{attribute} must be an integer") from None

    async def start(self) -> AsyncIterator[Any]:
        """The requests of one start task after the other; ends only when the whole crawl was idle for `max_idle_time` seconds
        (0: never).
        """
        assert self.redis_batch_size is not None
        frontier = frontier_of(self.crawler)
        idle_since: float | None = None
        while True:
            lease = frontier.take_task()
            if lease is not None:
                idle_since = None
                for request in self._requests_of(lease):
                    yield request
                continue
            if not frontier.task_idle:
                idle_since = None
            elif idle_since is None:
                idle_since = frontier.now()
            elif self.max_idle_time and frontier.now() - idle_since >= self.max_idle_time:
                logger.info("closing: the whole crawl was idle for %d s", self.max_idle_time)
                return
            frontier.want_tasks(self.redis_batch_size)
            try:
                await self._tasks_or_a_second()
            except CancelledError:  # the crawl ends; Twisted's is an Exception, which Scrapy would log as a fault of this method
                return

    async def _tasks_or_a_second(self) -> None:
        came: Deferred[None] = Deferred()

        def fire() -> None:
            if not came.called:
                came.callback(None)

        listeners = frontier_of(self.crawler).listeners
        listeners.tasks = fire
        timer = call_later(1.0, fire)
        try:
            await maybe_deferred_to_future(came)
        finally:
            timer.cancel()
            listeners.tasks = lambda: None

    def _requests_of(self, lease: Lease) -> Iterable[Request]:
        """The requests of one start task; it is acked when the engine asks for what comes after them, so they are in the
        outbox by then.
        """
        frontier = frontier_of(self.crawler)
        assert self.crawler.stats is not None
        try:
            made = self.make_request_from_data(lease.data)
            requests = [made] if isinstance(made, Request) else list(made or ())
        except CloseSpider:
            frontier.release(lease.id)
            raise
        except Exception as exc:  # whatever a user's method makes of foreign data: only this task is set aside
            reason = f"{type(exc).__name__}: {exc}"
            logger.error("start task %.200r is set aside in %s: %s", lease.data, frontier.config.keys.dead(), reason)
            self.crawler.stats.inc_value("start_tasks/bad")
            frontier.bury(lease.id, reason)
            return
        self._open_task = (page := Page(lease.id), rest := iter(requests))
        current_page.set(page)
        yield from rest
        self._end_open_task()

    def _end_open_task(self) -> None:
        if self._open_task is not None:
            assert self.crawler.stats is not None
            current_page.set(None)
            self._open_task[0].finish_part(frontier_of(self.crawler))
            self.crawler.stats.inc_value("start_tasks/taken")
            self._open_task = None

    def hand_over_open_task(self) -> None:
        """The crawl closes and `start()` may never be resumed: the rest of the task it is at goes into the frontier now."""
        if self._open_task is not None and self.crawler.engine is not None:
            current_page.set(self._open_task[0])
            for request in self._open_task[1]:
                self.crawler.engine.crawl(request)
            self._end_open_task()

    def feed(self, task_id: str, token: str, data: bytes) -> None:
        """Make a start task for the service named by `feeds`, unless `token` is the one it last had for `task_id`.

        Called in a callback, it is stored before or together with the ack of the callback's request.
        """
        frontier_of(self.crawler).add_task(NextTask(task_id, token, data))

    def set_aside(self, failure: Failure) -> None:
        """An errback: the request is not forgotten but kept among the dead ones with the reason, to be replayed."""
        set_aside(self.crawler, failure.request, reason_of(failure))  # type: ignore[attr-defined]  # the engine puts it there

    def make_request_from_data(self, data: bytes) -> Request | Iterable[Request] | None:
        """The request or requests of a start task: a bare URL, or JSON with the fields of `StartTask`. Override it for other
        formats.

        Whatever it raises sets the task aside with that reason.
        """
        text = data.decode()
        task = msgspec.json.decode(data, type=StartTask) if text.lstrip().startswith("{") else StartTask(url=text.strip())
        return Request(
            task.url,
            method=task.method,
            headers=task.headers,
            body=task.body,
            cookies=task.cookies,  # type: ignore[arg-type]  # dict is invariant in its key
            meta=task.meta,
            priority=task.priority,
            dont_filter=task.dont_filter,
        )


class RedisSpider(RedisMixin, Spider):
    """A Spider fed from Redis."""

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        """As Scrapy's, then `setup_redis`."""
        spider = super().from_crawler(crawler, *args, **kwargs)
        spider.setup_redis(crawler)
        return spider


class RedisCrawlSpider(RedisMixin, CrawlSpider):
    """A CrawlSpider fed from Redis."""

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        """As Scrapy's, then `setup_redis`."""
        spider = super().from_crawler(crawler, *args, **kwargs)
        spider.setup_redis(crawler)
        return spider
