"""Requests that wait long for their site do not count against CONCURRENT_REQUESTS, so sites that hang hold back no other one.

A request that waits for an answer, or for its turn at its site, costs a connection and next to no memory. Each still counts as
one of its site's places (`SiteSlots`), so no site gets more requests for it.

The other functions reach into Scrapy: `tests/contract/assumptions.py` has what is assumed about each internal. Calls that block
run in a thread, under every reactor and without one.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

import redis
from scrapy import Request
from scrapy.exceptions import IgnoreRequest
from scrapy.utils.asyncio import call_later, is_asyncio_available
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

from redis_components.errors import IncompatibleEngine

if TYPE_CHECKING:
    from scrapy.core.downloader import Downloader
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from twisted.python.failure import Failure

    from .page_tracker import PageTracker


LONG_S = 0.75
LOOK_S = 0.25
MOST_TIMES = 2
"""In all so many times CONCURRENT_REQUESTS: on a machine that is too busy to read answers in time, all wait long."""


class LongWaits:
    """Raises the downloader's limit by the number of requests that it has worked on for more than LONG_S; `wake` makes the
    engine ask for requests. Nothing is done while fewer than half of the usual number are at work.
    """

    def __init__(
        self,
        downloader: Downloader,
        wake: Callable[[], None],
        now: Callable[[], float],
        later: Callable[[float, Callable[[], None]], object] = call_later,
    ) -> None:
        self._downloader = downloader
        self._wake = wake
        self._now = now
        self._later = later
        self._usual = downloader.total_concurrency
        self._since: dict[Request, float] = {}
        self._is_looking = False

    def begin(self) -> None:
        """Begin to look when half of the downloader's places are taken; called for each request handed to it."""
        if not self._is_looking and 2 * len(self._downloader.active) >= self._usual:
            self._is_looking = True
            self._look()

    def _look(self) -> None:
        now, downloader = self._now(), self._downloader
        self._since = {request: self._since.get(request, now) for request in downloader.active}
        long = sum(now - since >= LONG_S for since in self._since.values())
        before, downloader.total_concurrency = downloader.total_concurrency, min(self._usual + long, MOST_TIMES * self._usual)
        if downloader.total_concurrency > before:
            self._wake()
        self._is_looking = 2 * len(self._since) >= self._usual
        if self._is_looking:
            self._later(LOOK_S, self._look)


class InProgress(set[Request]):
    """The engine slot's set of requests in progress, which reports when one begins and when it is finished.

    In Scrapy 2.19 every scheduled request leaves this set exactly once and last of all: its callback's output is exhausted, its
    items are through the pipelines, its children are with the scheduler; also after errors, retries, redirects and robots.txt.
    There is no public signal for it. It enters in the context from which the asyncio tasks of its download, callback and
    pipelines inherit.
    """

    def __init__(self, finished: Callable[[Request], None], begun: Callable[[Request], None]) -> None:
        super().__init__()
        self._finished = finished
        self._begun = begun

    def add(self, request: Request, /) -> None:
        """Add a request, and report its beginning."""
        super().add(request)
        self._begun(request)

    def remove(self, request: Request, /) -> None:
        """Remove a request, and report its end."""
        super().remove(request)
        self._finished(request)


def running_scheduler(crawler: Crawler) -> Any:
    """Return the scheduler of a crawl, None before it has one. `ExecutionEngine.scheduler` is public since Scrapy 2.19."""
    return getattr(getattr(crawler.engine, "_slot", None), "scheduler", None)


def watch_finished(
    crawler: Crawler,
    finished: Callable[[Request], None],
    *,
    begun: Callable[[Request], None] = lambda request: None,
    failed: Callable[[Request, Failure], object] = lambda request, failure: None,
) -> Callable[[], None]:
    """Call `finished` whenever Scrapy is done with a request; returns a function that wakes the engine.

    `begun` is called when Scrapy begins with a request, in a context of that request's own where Scrapy runs on asyncio.
    `failed` is called with the error of a request's callback, errback or spider middleware: Scrapy's signal for it leaves out
    CloseSpider. Raises IncompatibleEngine where the engine lacks one of these points.
    """
    slot = getattr(crawler.engine, "_slot", None)
    inprogress = getattr(slot, "inprogress", None)
    wake = getattr(getattr(slot, "nextcall", None), "schedule", None)
    scraper = getattr(crawler.engine, "scraper", None)
    handle_error = getattr(scraper, "handle_spider_error", None)
    is_scrapys = hasattr(getattr(crawler.engine, "downloader", None), "_enqueue_request")
    if type(inprogress) is not set or inprogress or wake is None or handle_error is None or not is_scrapys:
        import scrapy

        raise IncompatibleEngine(
            f"Scrapy {scrapy.__version__} has no known point where a request is finished (engine._slot.inprogress), fails "
            "(engine.scraper.handle_spider_error) or is sent (engine.downloader._enqueue_request); install the Scrapy version "
            "that Trawl's constraints.txt pins, and name no DOWNLOADER but a subclass of Scrapy's"
        )

    def tell_and_handle(failure: Failure, request: Request, response: Any) -> None:
        failed(request, failure)
        handle_error(failure, request, response)

    slot.inprogress = InProgress(finished, begun)  # type: ignore[union-attr]
    scraper.handle_spider_error = tell_and_handle  # type: ignore[union-attr]
    return wake  # type: ignore[no-any-return]


class NotNow(IgnoreRequest):
    """A request is not sent, because its spider or site is held: its lease is given back."""


def check_when_sent(
    crawler: Crawler, is_late: Callable[[Request], bool], ended: Callable[[], None], dropped: Callable[[Request], None]
) -> None:
    """Ask `is_late` at the last moment before a request is sent; those that are end as with `take_back`. Call `ended` after the
    answer, and `dropped` where a middleware raised IgnoreRequest, before it was sent or after.
    """
    handlers, middleware = downloader_of(crawler).handlers, downloader_of(crawler).middleware
    download, through = handlers.download_request_async, middleware.download_async

    async def download_in_time(request: Request) -> Response:
        if is_late(request):
            request.errback = None
            raise NotNow("its time at the site is over")
        try:
            return await download(request)  # type: ignore[no-any-return]
        finally:
            ended()

    async def download_or_drop(download_func: Any, request: Request) -> Any:
        try:
            return await through(download_func, request)
        except IgnoreRequest:
            dropped(request)
            raise

    handlers.download_request_async, middleware.download_async = download_in_time, download_or_drop


def send_at_once(crawler: Crawler, pages: PageTracker) -> None:
    """Let no paced request wait in the downloader for a place or for the delay of its slot: it ends as with `take_back`. The
    random part of the delay is left out.
    """
    downloader = downloader_of(crawler)
    enqueue = downloader._enqueue_request

    async def enqueue_at_once(request: Request) -> Response:
        key, slot = downloader._get_slot(request)
        if wait_s := _wait_s(slot):
            pages.put_back(request, wait_s)
            request.errback = None
            raise NotNow("its site has no place for it here")
        if wait_s := math.inf if len(slot.active) + 1 >= slot.concurrency else slot.delay:
            pages.rest_after(request, key, wait_s)
        slot.close()
        slot.lastseen = 0.0
        return await enqueue(request)  # type: ignore[no-any-return]

    downloader._enqueue_request = lambda request: (enqueue_at_once if pages.is_paced(request) else enqueue)(request)


def _wait_s(slot: Any) -> float:
    """Return the seconds until a request would be sent; `active` has those, too, whose tasks do not run yet."""
    if len(slot.active) >= slot.concurrency:
        return math.inf
    return max(0.0, slot.lastseen + slot.delay * (1 + len(slot.queue)) - time.monotonic()) if slot.delay else 0.0


CALLBACK = "the callback"


def await_within(
    crawler: Crawler,
    within: Callable[..., Coroutine[Any, Any, Any]],
    items_within: Callable[[Request, AsyncIterator[Any]], AsyncIterator[Any]],
) -> None:
    """Await each download, callback with its spider middlewares, and item with its pipelines and signal handlers by `within`
    (of `PageAges`); and what asynchronous callbacks yield by `items_within`. Both are called without a coroutine around them.
    """
    scraper: Any = getattr(crawler.engine, "scraper", None)
    middleware = downloader_of(crawler).middleware
    scrape, process_item, output = scraper._scrape, scraper.start_itemproc_async, scraper.handle_spider_output_async
    download = middleware.download_async

    def process_item_within(item: Any, *, response: Any) -> Coroutine[Any, Any, None]:
        request = getattr(response, "request", None)
        return within(request, "an item pipeline", process_item(item, response=response), None)

    def output_within(result: Any, request: Request, response: Any) -> Coroutine[Any, Any, None]:
        found = items_within(request, result) if hasattr(result, "__anext__") else result
        return output(found, request, response)  # type: ignore[no-any-return]

    middleware.download_async = lambda func, request: within(request, "the download", download(func, request))
    scraper._scrape = lambda result, request: within(request, CALLBACK, scrape(result, request), None)
    scraper.start_itemproc_async, scraper.handle_spider_output_async = process_item_within, output_within


def waiting_for_turn(crawler: Crawler) -> set[Request]:
    """Return the requests that wait in the downloader for their turn at their site."""
    return {request for slot in downloader_of(crawler).slots.values() for request, _ in slot.queue}


def downloader_of(crawler: Crawler) -> Any:
    """Return the downloader of a running crawl."""
    assert crawler.engine is not None
    return crawler.engine.downloader


def free_places(crawler: Crawler) -> Callable[[], float]:
    """Return the function that counts the requests that the engine would begin now."""
    downloader = downloader_of(crawler)
    return lambda: downloader.total_concurrency - len(downloader.active)


def take_back(crawler: Crawler, is_held: Callable[[Request], bool]) -> None:
    """End those requests that wait for their turn in the downloader and are held: Scrapy is done with each soon, and no errback
    is called.
    """
    for slot in list(downloader_of(crawler).slots.values()):
        for entry in [entry for entry in slot.queue if is_held(entry[0])]:
            slot.queue.remove(entry)
            request, turn = entry
            request.errback = None  # it did not fail; its next owner reads it again
            turn.errback(NotNow("it is held"))


T = TypeVar("T")
logger = logging.getLogger(__name__)
_running: set[Any] = set()
_THREADS = 8


@lru_cache(maxsize=1)
def _threads() -> ThreadPoolExecutor:
    """Return the pool; not the loop's own: there names are resolved, and six whose servers do not answer would hold all of it."""
    return ThreadPoolExecutor(_THREADS, thread_name_prefix="in thread")


async def from_redis(call: Callable[[], T]) -> T | None:
    """Run `call`, which asks Redis for what a crawl can do without, in a thread; return its result, None without Redis."""
    try:
        return await in_thread(call)
    except redis.RedisError as error:
        logger.debug("without Redis: %s", error)
        return None


async def in_thread(call: Callable[[], T]) -> T:
    """Run `call` in a thread; return its result, or raise its error."""
    if is_asyncio_available():
        import asyncio

        return await asyncio.get_running_loop().run_in_executor(_threads(), copy_context().run, call)
    from twisted.internet.threads import deferToThread

    return await maybe_deferred_to_future(deferToThread(call))


def in_background(work: Coroutine[Any, Any, None]) -> None:
    """Let `work` run while the crawl goes on; it must not raise."""
    if is_asyncio_available():
        import asyncio

        _running.add(task := asyncio.ensure_future(work))  # the loop itself keeps no reference
        task.add_done_callback(_running.discard)
    else:
        Deferred.fromCoroutine(work)
