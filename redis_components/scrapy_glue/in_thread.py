"""Calls that block, out of a coroutine of Scrapy's: in a thread, under every reactor and without one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from scrapy.utils.asyncio import call_later, is_asyncio_available
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

T = TypeVar("T")


async def in_thread(call: Callable[[], T]) -> T:
    """What `call` returns or raises."""
    if is_asyncio_available():
        import asyncio

        return await asyncio.to_thread(call)
    from twisted.internet.threads import deferToThread

    return await maybe_deferred_to_future(deferToThread(call))


async def sleep(seconds: float) -> None:
    """Return after so many seconds."""
    done: Deferred[None] = Deferred()
    call_later(seconds, done.callback, None)
    await maybe_deferred_to_future(done)
