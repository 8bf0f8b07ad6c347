"""A page of thousands of threads hands them over by and by, so that other pages' are not told behind them."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from forums.spiders import recent_scan
from forums.spiders.forum_list import ForumListSpider
from forums.spiders.recent_scan import AT_ONCE


def test_a_page_of_thousands_of_threads_waits_until_redis_has_those_before(monkeypatch: pytest.MonkeyPatch) -> None:
    outbox: list[str] = []
    sizes: list[int] = []
    looks = iter(range(10**6))

    async def sleep(_: float) -> None:
        if next(looks) % 3 == 2:  # Redis answers once in a while
            sizes.append(len(outbox))
            outbox.clear()

    monkeypatch.setattr(recent_scan, "sleep", sleep)
    monkeypatch.setattr(recent_scan, "frontier_of", lambda _: SimpleNamespace(outbox=outbox))
    spider = ForumListSpider.__new__(ForumListSpider)
    spider.crawler = None  # type: ignore[assignment]  # `frontier_of` needs none here

    async def page(name: str, threads: int) -> None:
        for count in range(1, threads + 1):
            await spider.others_first(count)
            outbox.append(name)

    async def pages() -> None:
        await asyncio.gather(page("thousands", 9_000), page("few", 20))

    asyncio.run(pages())
    assert sum(sizes) + len(outbox) == 9_020
    assert max(sizes) <= AT_ONCE + 20
