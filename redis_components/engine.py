"""What Trawl needs of Scrapy's engine: the one point where a request is finished, a way to wake it, and its clock.

Everything that touches an internal of Scrapy is in this file; `tests/integration/test_engine_contract.py` checks each
assumption against the installed Scrapy.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from scrapy import Request, Spider, signals
from scrapy.core.engine import ExecutionEngine
from scrapy.exceptions import IgnoreRequest
from scrapy.utils.asyncio import call_later, is_asyncio_available
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

from . import connection
from .crawl_config import config_of
from .errors import IncompatibleEngine
from .frontier import Frontier, FrontierConfig
from .transport import Exchanger, LoopTransport, ThreadTransport

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings
    from twisted.python.failure import Failure

CLOSE_TIMEOUT_S = 8.0
"""Longest wait for Redis when a crawl closes, shorter than the grace time that a supervisor gives."""

_frontiers: WeakKeyDictionary[Crawler, Frontier] = WeakKeyDictionary()
_deadlines: WeakKeyDictionary[Crawler, float] = WeakKeyDictionary()
_closing: set[Any] = set()

logger = logging.getLogger(__name__)


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
        """Seconds, never going back."""
        return time.monotonic()

    def call_later(self, delay_s: float, call: Callable[[], None]) -> Callable[[], None]:
        """Run `call` in the reactor after `delay_s`; returns what cancels it."""
        return call_later(delay_s, call).cancel

    def call_soon_threadsafe(self, call: Callable[[], None]) -> None:
        """Run `call` in the reactor's thread soon."""
        self._call(call)


class InProgress(set[Request]):
    """The engine slot's set of requests in progress, which tells when one begins and when it is finished.

    In Scrapy 2.19 every scheduled request leaves this set exactly once and last of all: its callback's output is exhausted,
    its items are through the pipelines, its children are with the scheduler; also after errors, retries, redirects and
    robots.txt. There is no public signal for it yet (scrapy/scrapy#7978 proposes `finish_request`).

    It enters in the context from which the asyncio tasks of its download, callback and pipelines inherit.
    """

    def __init__(self, finished: Callable[[Request], None], begun: Callable[[Request], None]) -> None:
        super().__init__()
        self._finished = finished
        self._begun = begun

    def add(self, request: Request, /) -> None:
        """Add, and tell."""
        super().add(request)
        self._begun(request)

    def remove(self, request: Request, /) -> None:
        """Remove, and tell."""
        super().remove(request)
        self._finished(request)


def watch_finished(
    crawler: Crawler,
    finished: Callable[[Request], None],
    *,
    begun: Callable[[Request], None] = lambda request: None,
    failed: Callable[[Request, Failure], None] = lambda request, failure: None,
) -> Callable[[], None]:
    """Call `finished` whenever Scrapy is done with a request; returns a function that wakes the engine.

    `begun` is called when Scrapy begins with a request, in a context of that request's own where Scrapy runs on asyncio.
    `failed` is called with what a request's callback, errback or spider middleware raised: Scrapy's signal for it leaves out
    CloseSpider. Raises IncompatibleEngine where the engine lacks one of these points.
    """
    slot = getattr(crawler.engine, "_slot", None)
    inprogress = getattr(slot, "inprogress", None)
    wake = getattr(getattr(slot, "nextcall", None), "schedule", None)
    scraper = getattr(crawler.engine, "scraper", None)
    handle_error = getattr(scraper, "handle_spider_error", None)
    if type(inprogress) is not set or inprogress or wake is None or handle_error is None:
        import scrapy

        raise IncompatibleEngine(
            f"Scrapy {scrapy.__version__} has no known point where a request is finished (engine._slot.inprogress) or fails "
            "(engine.scraper.handle_spider_error); install the Scrapy version that Trawl's constraints.txt pins"
        )

    def tell_and_handle(failure: Failure, request: Request, response: Any) -> None:
        failed(request, failure)
        handle_error(failure, request, response)

    slot.inprogress = InProgress(finished, begun)  # type: ignore[union-attr]
    scraper.handle_spider_error = tell_and_handle  # type: ignore[union-attr]
    return wake  # type: ignore[no-any-return]


class NotNow(IgnoreRequest):
    """A request is not sent, because what it belongs to is held: its lease is given back."""


def take_back(crawler: Crawler, is_held: Callable[[Request], bool]) -> None:
    """End those requests that wait for their turn in the downloader and are held: Scrapy is done with each soon, and no errback
    is called.
    """
    slots = getattr(getattr(crawler.engine, "downloader", None), "slots", {})  # a project's own downloader may have none
    for slot in list(slots.values()):
        for entry in [entry for entry in slot.queue if is_held(entry[0])]:
            slot.queue.remove(entry)
            request, turn = entry
            request.errback = None  # it did not fail; who leases it next reads it anew
            turn.errback(NotNow("it is held"))


def running_crawler(spider: Spider) -> Crawler | None:
    """The crawler of `spider`, where an engine of Scrapy's is at work; None for a spider in a script or a test without one."""
    crawler: Crawler | None = getattr(spider, "crawler", None)
    try:
        return crawler if isinstance(getattr(crawler, "engine", None), ExecutionEngine) else None
    except RuntimeError:  # it is not set yet
        return None


def frontier_of(crawler: Crawler, adapt: Callable[[FrontierConfig], FrontierConfig] = lambda config: config) -> Frontier:
    """The one frontier of `crawler`, shared by its scheduler, pipeline, spider and stats; made at the first call, in the
    reactor's thread. The scheduler is the first to call: it adapts what the settings say to its queue and dupefilter.
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


def _transport(settings: BaseSettings, clock: ReactorClock, beat_s: float) -> Exchanger:
    in_thread = ThreadTransport(connection.from_settings(settings), clock, beat_s=beat_s)
    client = connection.asyncio_client(settings) if is_asyncio_available() else None
    return in_thread if client is None else LoopTransport(client, in_thread)


def close_frontier(crawler: Crawler) -> Deferred[None]:
    """Release what was not started; fires when everything is stored, or when the time for closing is over."""
    return _in_time(crawler, frontier_of(crawler).close)


async def _leave(crawler: Crawler) -> None:
    """Say good-bye on the last awaited signal of a crawl, with what is left and the final stats."""
    frontier = frontier_of(crawler)
    await maybe_deferred_to_future(_in_time(crawler, frontier.leave))
    frontier.stop()


def _in_time(crawler: Crawler, action: Callable[[Callable[[], None]], None]) -> Deferred[None]:
    """Fires when `action` calls back; closing and leaving together take at most CLOSE_TIMEOUT_S."""
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
    closing = crawler.engine.close_spider_async(reason=reason)
    if is_asyncio_available():
        import asyncio

        _closing.add(task := asyncio.ensure_future(closing))  # the loop itself keeps no reference
        task.add_done_callback(_closing.discard)
    else:
        Deferred.fromCoroutine(closing)
