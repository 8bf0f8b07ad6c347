"""Scrapy's internals that `workers` use; `tests/contract/assumptions.py` has what is assumed about each."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from scrapy.core import scraper
from scrapy.utils.asyncgen import as_async_generator
from scrapy.utils.asyncio import AsyncioLoopingCall, call_later
from scrapy.utils.misc import build_from_crawler, load_object

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from scrapy.core.engine import ExecutionEngine
    from scrapy.crawler import Crawler, CrawlerRunner

EARLY_S = 0.005  # uvloop rounds a timer to whole milliseconds of a clock that it cuts to milliseconds


def engine_of(crawler: Crawler | None) -> ExecutionEngine | None:
    """Return the engine; None before the crawl is open."""
    return crawler._engine if crawler else None


def stats_of(crawler: Crawler | None) -> dict[str, Any]:
    """Return the crawl's stats; empty where it did not come so far."""
    return dict(crawler._stats.get_stats()) if crawler and crawler._stats else {}


def pages_in_flight(engine: ExecutionEngine) -> int:
    """Return the number of requests that Scrapy has begun with and is not done with."""
    return len(engine._slot.inprogress) if engine._slot else 0


def stop(crawler: Crawler) -> Coroutine[Any, Any, None] | None:
    """Stop the crawl as `Crawler.stop_async` does; return None where the engine does not run."""
    engine = engine_of(crawler)
    if engine is None or not engine.running:
        return None
    crawler.crawling = False
    return engine.stop_async()


def in_a_later_turn(result: Any, call: Callable[[], object]) -> Any:
    """Run `call` after all other callbacks; pass the result on. A callback itself."""
    call_later(0, call)
    return result


def tune_reactor(runner: CrawlerRunner) -> None:
    """Tune the reactor as CrawlerProcess does, once in a process and in the reactor's thread."""
    from twisted.internet import reactor

    resolver: Any = load_object(runner.settings["TWISTED_DNS_RESOLVER"])
    # The runner in the crawler's place, as in CrawlerProcess: resolvers need nothing but the settings.
    in_place: Any = runner
    build_from_crawler(resolver, in_place, reactor=reactor).install_on_reactor()
    reactor.getThreadPool().adjustPoolsize(maxthreads=runner.settings.getint("REACTOR_THREADPOOL_MAXSIZE"))


def start_tasks_as_needed() -> None:
    """Have the scraper start a task for each object that a callback gives. Scrapy starts CONCURRENT_ITEMS of them, a hundred, for
    each page: a third of the CPU time of a small page (Scrapy 2.13 to 2.19).
    """
    setattr(scraper, "_parallel_asyncio", _parallel)  # noqa: B010 - a name that is not public


async def _parallel(iterable: Any, count: int, call: Callable[..., Coroutine[Any, Any, None]], *args: Any, **kwargs: Any) -> None:
    places, tasks = asyncio.Semaphore(count), set[asyncio.Task[None]]()
    async for found in as_async_generator(iterable):
        await places.acquire()
        task = asyncio.create_task(call(found, *args, **kwargs))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        task.add_done_callback(lambda _: places.release())
    while tasks:
        await asyncio.wait([*tasks])


def call_once_an_interval() -> None:
    """Make Scrapy's periodic calls once an interval, also on an event loop that wakes them a moment early.

    Scrapy sleeps until the interval ends, calls, and sleeps for what is left: after a call 0.4 ms early that is 0.4 ms, which
    uvloop rounds to nothing, and the call is made again and again until the interval has ended: up to 22 times in one second
    (Scrapy 2.14 to 2.19).
    """
    AsyncioLoopingCall._to_sleep = _to_sleep  # type: ignore[method-assign]


def _to_sleep(self: AsyncioLoopingCall) -> float:
    assert self.interval is not None
    assert self._start_time is not None
    left = self.interval - (time.monotonic() - self._start_time) % self.interval
    return left if left > min(EARLY_S, self.interval / 4) else left + self.interval
