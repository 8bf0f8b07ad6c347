"""Calls that block, out of a coroutine of Scrapy's: in a thread, under every reactor and without one."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import lru_cache
from typing import Any, TypeVar

from scrapy.utils.asyncio import call_later, is_asyncio_available
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

T = TypeVar("T")
_running: set[Any] = set()
_THREADS = 8


@lru_cache(maxsize=1)
def _threads() -> ThreadPoolExecutor:
    """Return the pool; not the loop's own: there names are resolved, and six whose servers do not answer would hold all of it."""
    return ThreadPoolExecutor(_THREADS, thread_name_prefix="in thread")


async def in_thread(call: Callable[[], T]) -> T:
    """Run `call` in a thread; return its result, or raise its error."""
    if is_asyncio_available():
        import asyncio

        return await asyncio.get_running_loop().run_in_executor(_threads(), copy_context().run, call)
    from twisted.internet.threads import deferToThread

    return await maybe_deferred_to_future(deferToThread(call))


async def sleep(seconds: float) -> None:
    """Return after so many seconds."""
    done: Deferred[None] = Deferred()
    call_later(seconds, done.callback, None)
    await maybe_deferred_to_future(done)


def in_background(work: Coroutine[Any, Any, None]) -> None:
    """Let `work` run while the crawl goes on; it must not raise."""
    if is_asyncio_available():
        import asyncio

        _running.add(task := asyncio.ensure_future(work))  # the loop itself keeps no reference
        task.add_done_callback(_running.discard)
    else:
        Deferred.fromCoroutine(work)
