"""The frontier of a crawl on Scrapy's engine: its configuration from settings and spider, its clock, its transport, how it is
closed and left, and how a crawl is refused.

Threads, and the internals of Scrapy that are needed, are in `internals.py`.
"""

from __future__ import annotations

import logging
import os
import socket
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self
from weakref import WeakKeyDictionary, WeakSet

from scrapy import Request, Spider, signals
from scrapy.core.engine import ExecutionEngine
from scrapy.exceptions import CloseSpider
from scrapy.utils.asyncio import call_later, is_asyncio_available, sleep
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

from redis_components import connection, defaults
from redis_components.dupefilter import filter_of
from redis_components.errors import ConfigError, TrawlError
from redis_components.frontier import messages
from redis_components.frontier.config import FrontierConfig
from redis_components.frontier.frontier import Frontier
from redis_components.frontier.transport import Exchanger, LoopTransport, ThreadTransport
from redis_components.keys import CrawlKeys
from redis_components.politeness.limits import default_lane
from redis_components.server.names import check_one_slot, crawl_name, namespace_of
from redis_components.setting_values import number_of

from .internals import in_background

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings


_owners: WeakKeyDictionary[Crawler, str] = WeakKeyDictionary()


def name_owner(crawler: Crawler, owner: str) -> None:
    """Keep the leases of this crawl under `owner`: a supervisor that knows the name can end them at once.

    Before the crawl begins, and never the same name for two crawls, whether in one process or in two. A crawl without it gets
    another name.
    """
    _owners[crawler] = owner


def keys_of(crawler: Crawler) -> CrawlKeys:
    """Return the keys of this crawler's spider, by the settings' patterns. Raises ConfigError."""
    spider = crawler.spider or crawler.spidercls
    keys = crawl_keys(crawler.settings, crawl_name(spider))
    start_keys = getattr(crawler.spider, "start_keys", ())  # the spider has put them into the namespace
    if not start_keys:
        return keys
    fed = keys.start_urls if keys.start_urls != start_keys[0] else ""
    return replace(keys, start_urls=start_keys[0], more_start_urls=start_keys[1:], fed_start_urls=fed)


def crawl_keys(settings: BaseSettings, spider: str) -> CrawlKeys:
    """Return the keys of the spider named `spider`, by namespace and patterns in `settings`. Raises ConfigError."""
    return CrawlKeys.for_spider(
        spider,
        namespace=namespace_of(settings),
        requests=settings.get("SCHEDULER_QUEUE_KEY", defaults.SCHEDULER_QUEUE_KEY),
        dupefilter=settings.get("SCHEDULER_DUPEFILTER_KEY", defaults.SCHEDULER_DUPEFILTER_KEY),
        start_urls=settings.get("REDIS_START_URLS_KEY", defaults.START_URLS_KEY),
        items=settings.get("REDIS_ITEMS_KEY", defaults.PIPELINE_KEY),
        stats=settings.get("STATS_KEY", defaults.STATS_KEY),
    )


def config_of(crawler: Crawler) -> FrontierConfig:
    """Return the configuration of this crawl's frontier; our Scheduler completes it for its queue and dupefilter. Raises
    ConfigError.
    """
    if error := getattr(crawler.spider, "setup_error", None):
        raise error
    settings = crawler.settings
    feeds = getattr(crawler.spidercls, "feeds", None)
    keys, next_keys = keys_of(crawler), crawl_keys(settings, feeds) if feeds else None
    _check_distinct(keys)
    if connection.is_cluster(settings):
        check_one_slot(
            [*messages.all_keys(keys, next_keys), *keys.turn_keys], "REDIS_NAMESPACE", f"'{{{crawl_name(crawler.spidercls)}}}'"
        )
    return FrontierConfig(
        keys=keys,
        next_keys=next_keys,
        owner=_owners.get(crawler) or f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}",
        ends_on_lasting_errors=crawler not in _owners,  # a crawler of a fleet waits until the fault is mended
        turn_by=getattr(crawler.spidercls, "turn_by", ""),
        newest_fields=tuple(getattr(crawler.spidercls, "newest_fields", ())),
        most_fed=number_of(settings, "SCHEDULER_MAX_FED_TASKS", FrontierConfig.most_fed),
        filter=filter_of(settings),
        quota=settings.get("SCHEDULER_QUOTA") or "",
        concurrency=number_of(settings, "CONCURRENT_REQUESTS", defaults.REDIS_CONCURRENT_REQUESTS),
        max_prefetch=number_of(settings, "SCHEDULER_MAX_PREFETCH", FrontierConfig.max_prefetch),
        max_attempts=number_of(settings, "SCHEDULER_MAX_ATTEMPTS", FrontierConfig.max_attempts),
        max_page_age_s=number_of(settings, "SCHEDULER_MAX_PAGE_AGE", FrontierConfig.max_page_age_s),
        ttl_s=number_of(settings, "SCHEDULER_OWNER_TTL", FrontierConfig.ttl_s),
        fsync_window_s=number_of(settings, "SCHEDULER_FSYNC_WINDOW", FrontierConfig.fsync_window_s),
        max_items=number_of(settings, "REDIS_ITEMS_MAX_WAITING", FrontierConfig.max_items),
        max_item_mb=number_of(settings, "REDIS_ITEMS_MAX_MB", FrontierConfig.max_item_mb),
    )


def _check_distinct(keys: CrawlKeys) -> None:
    used: dict[str, str] = {}
    for what, key in (
        ("the queue", keys.requests),
        ("the dupefilter", keys.dupefilter),
        ("items", keys.items),
        ("stats", keys.stats),
        *(("start tasks", key) for key in (keys.start_urls, *keys.more_start_urls)),
    ):
        if key in used:
            raise ConfigError(f"{key} is set as the key of both {used[key]} and {what}: give each another one")
        used[key] = what


REASON = "refused"

logger = logging.getLogger(__name__)
_refused: WeakSet[Crawler] = WeakSet()
_failed: WeakSet[Crawler] = WeakSet()


def fail(crawler: Crawler, why: str = "") -> None:
    """Let `scrapy crawl` end with exit code 1: so does Scrapy where the crawl has no spider at its end. `why` is logged once."""
    if crawler in _failed:
        return
    _failed.add(crawler)
    if why:
        logger.error("%s: the crawl ends with an exit code that is not 0", why)

    async def forget_spider() -> None:
        await sleep(0)  # other receivers of the signal find the spider until then
        crawler.spider = None

    crawler.signals.connect(forget_spider, signals.spider_closed, weak=False)


def is_refused(crawler: Crawler) -> bool:
    """Return True if this crawl is ending already, because another component could not start."""
    return crawler in _refused


@contextmanager
def refusing(crawler: Crawler) -> Iterator[None]:
    """Turn a TrawlError in the block into one line of the log and CloseSpider."""
    try:
        yield
    except TrawlError as error:
        logger.error("%s", error)
        _refused.add(crawler)
        fail(crawler)
        raise CloseSpider(REASON) from error


CLOSE_TIMEOUT_S = 8.0
"""Longest wait for Redis when a crawl closes, shorter than the grace time that a supervisor gives."""

_frontiers: WeakKeyDictionary[Crawler, Frontier] = WeakKeyDictionary()
_deadlines: WeakKeyDictionary[Crawler, float] = WeakKeyDictionary()


class ReactorClock:
    """The clock of Scrapy's reactor, or of the event loop where Scrapy runs without a reactor. Made in the reactor's thread."""

    def __init__(self) -> None:
        self._call: Callable[[Callable[[], None]], Any]
        if is_asyncio_available():
            import asyncio

            self._call = asyncio.get_event_loop().call_soon_threadsafe
        else:
            from twisted.internet import reactor

            self._call = reactor.callFromThread

    def now(self) -> float:
        """Return seconds that never go back."""
        return time.monotonic()

    def call_later(self, delay_s: float, call: Callable[[], None]) -> Callable[[], None]:
        """Run `call` in the reactor after `delay_s`; returns what cancels it."""
        return call_later(delay_s, call).cancel

    def call_soon_threadsafe(self, call: Callable[[], None]) -> None:
        """Run `call` in the reactor's thread soon."""
        self._call(call)


class ForCrawler:
    """A component that Scrapy makes for each crawl, with the crawler alone."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Return a new instance."""
        return cls(crawler)

    def _count(self, stat: str) -> None:
        if self._crawler.stats is not None:
            self._crawler.stats.inc_value(stat)


def running_crawler(spider: Spider) -> Crawler | None:
    """Return the crawler of `spider`, where an engine of Scrapy's is at work; None for a spider in a script or a test without
    one.
    """
    crawler: Crawler | None = getattr(spider, "crawler", None)
    try:
        return crawler if isinstance(getattr(crawler, "engine", None), ExecutionEngine) else None
    except RuntimeError:  # it is not set yet
        return None


def is_one_page(spider: Spider | None) -> bool:
    """Return True for a spider that `scrapy fetch`, `parse` or `shell`: it takes no part in the crawl."""
    start = getattr(type(spider), "start", None)
    return getattr(start, "__module__", "").startswith("scrapy.commands.") or type(spider).__module__ == "scrapy.utils.spider"


def frontier_of(crawler: Crawler, adapt: Callable[[FrontierConfig], FrontierConfig] = lambda config: config) -> Frontier:
    """Return the one frontier of `crawler`, shared by its scheduler, pipeline, spider and stats; made at the first call, in the
    reactor's thread. The scheduler is the first to call: it adapts the settings' configuration to its queue and dupefilter.
    """
    frontier = _frontiers.get(crawler)
    if frontier is None:
        config = adapt(config_of(crawler))
        clock = ReactorClock()
        transport = _transport(crawler.settings, clock, config.beat_s)
        frontier = _frontiers[crawler] = Frontier(config, transport, clock)

        async def leave() -> None:
            await _leave(crawler)
            if isinstance(transport, LoopTransport):
                await transport.closed()

        async def leave_if_never_started() -> None:
            # A component failed to open: Scrapy closes the spider and sends no engine_stopped. In a process that lives on, this
            # owner would live on too.
            if crawler.engine is None or crawler.engine.start_time is None:
                await leave()

        crawler.signals.connect(leave, signals.engine_stopped, weak=False)
        crawler.signals.connect(leave_if_never_started, signals.spider_closed, weak=False)
    return frontier


def lane_of(crawler: Crawler, request: Request, *, or_default: bool = False) -> str:
    """Return the lane whose limits hold for a request; "" where there are none, or with `or_default` the one that it would be."""
    frontier = known_frontier(crawler)
    known = frontier.limits.lane_of(request.meta, request.url) if frontier is not None else ""
    return known or (default_lane(request.meta, request.url) if or_default else "")


def known_frontier(crawler: Crawler) -> Frontier | None:
    """Return the frontier of `crawler`; None where none was made, as with Scrapy's own scheduler and pipelines."""
    return _frontiers.get(crawler)


def _transport(settings: BaseSettings, clock: ReactorClock, beat_s: float) -> Exchanger:
    in_thread = ThreadTransport(connection.from_settings(settings), clock, beat_s=beat_s)
    client = connection.asyncio_client(settings) if is_asyncio_available() else None
    return in_thread if client is None else LoopTransport(client, in_thread)


def close_frontier(crawler: Crawler) -> Deferred[None]:
    """Release requests that were not started; fires when everything is stored, or when the time for closing is over."""
    return _in_time(crawler, frontier_of(crawler).close)


async def _leave(crawler: Crawler) -> None:
    """Leave on the last awaited signal of a crawl, with the remaining entries and the final stats."""
    frontier = frontier_of(crawler)
    if is_one_page(crawler.spider) and not frontier.outbox:
        frontier.stop()
        return
    await maybe_deferred_to_future(_in_time(crawler, frontier.leave))
    frontier.stop()


def _in_time(crawler: Crawler, action: Callable[[Callable[[], None]], None]) -> Deferred[None]:
    """Return a Deferred that fires when `action` calls back; closing and leaving together take at most CLOSE_TIMEOUT_S."""
    done: Deferred[None] = Deferred()
    deadline = _deadlines.setdefault(crawler, time.monotonic() + CLOSE_TIMEOUT_S)

    def end(message: str | None = None) -> None:
        if not done.called:
            if message:
                logger.warning(message)
            timer.cancel()
            done.callback(None)

    late = "Redis did not answer in time; what it does not know yet will be crawled again"
    timer = call_later(max(0.2, deadline - time.monotonic()), end, late)
    action(end)
    return done


def stop_crawl(crawler: Crawler, reason: str) -> None:
    """Close the spider from outside of Scrapy's own flow."""
    assert crawler.engine is not None
    in_background(crawler.engine.close_spider_async(reason=reason))
