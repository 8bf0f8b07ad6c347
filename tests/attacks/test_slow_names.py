"""The owner of names whose servers do not answer: looking for them holds a thread each, half a minute long; nobody else waits."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import aiohttp
import pytest
from scrapy import Spider
from scrapy.utils.test import get_crawler

from forums.spiders.base import ForumSpider
from redis_components.scrapy_glue.internals import in_thread
from tests.support.watched_site import Page, WatchedSite
from workers.http.client import DownloadHandler

NAMES = 12  # a crawler has 16 requests at a time, and Python six threads on two cores


@pytest.fixture
def answered(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Set it, and the names of `slow.test` get an answer: that there is no such name."""
    event, real = threading.Event(), socket.getaddrinfo

    def slow(host: Any, *rest: Any, **more: Any) -> Any:
        if str(host).endswith(".slow.test"):
            event.wait(120)
            raise socket.gaierror(socket.EAI_NONAME, "no such name")
        return real(host, *rest, **more)

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    yield event
    event.set()


def test_names_without_an_answer_hold_up_neither_other_names_nor_what_redis_is_asked(answered: threading.Event) -> None:
    async def crawl(url: str) -> tuple[int, int]:
        handler = DownloadHandler(get_crawler(Spider))
        session: aiohttp.ClientSession = handler._session
        waiting = [asyncio.ensure_future(session.get(f"http://n{number}.slow.test/")) for number in range(NAMES)]
        try:
            read = await asyncio.wait_for(in_thread(lambda: 5), 60)
            async with asyncio.timeout(60), session.get(url) as response:
                return read, response.status
        finally:
            answered.set()
            for one in waiting:
                with suppress(aiohttp.ClientError):
                    await one
            await session.close()

    with WatchedSite() as site:
        site.pages["/"] = Page("found")
        assert asyncio.run(crawl(f"http://localhost:{site.port}/")) == (5, 200)


@pytest.mark.parametrize("in_thread", [in_thread, ForumSpider.in_thread])
def test_redis_is_read_while_all_threads_of_the_loop_are_taken(in_thread: Callable[..., Awaitable[int]]) -> None:
    async def main() -> int:
        gate, loop = threading.Event(), asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(1))
        taken = loop.run_in_executor(None, gate.wait, 120)
        try:
            return await asyncio.wait_for(in_thread(lambda: 5), 60)
        finally:
            gate.set()
            await taken

    assert asyncio.run(main()) == 5
