"""A spider whose pages each wait for ever in another place: SPIDER_MODULES=tests.support.silent_spiders, with `SETTINGS`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Self

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.http import HtmlResponse, Response
from scrapy.utils.asyncio import is_asyncio_available
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

from redis_components.spiders import RedisSpider

SETTINGS = {
    "SPIDER_MODULES": __name__,
    "ITEM_PIPELINES": f'{{"{__name__}.SilentPipeline": 200, "redis_components.pipelines.RedisPipeline": 300}}',
    "DOWNLOADER_MIDDLEWARES": f'{{"{__name__}.SilentDownload": 500}}',
    "SPIDER_MIDDLEWARES": f'{{"{__name__}.SilentOutput": 500}}',
}


async def never() -> None:
    """Wait for what never comes."""
    await (asyncio.get_running_loop().create_future() if is_asyncio_available() else Deferred())


def page_of(url: str) -> str:
    return url.rpartition("/")[2]


class SilentSpider(RedisSpider):
    """Pages 2 to 7 never end; their start tasks name their callbacks by their number."""

    name = "silent"

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.item_scraped, signals.item_scraped)
        return spider

    def make_request_from_data(self, data: bytes) -> Request:
        callbacks = {"3": self.yield_and_wait, "4": self.wait}
        return Request(data.decode(), callback=callbacks.get(page_of(data.decode()), self.parse))

    def parse(self, response: HtmlResponse, **kwargs: Any) -> Any:
        # More than CONCURRENT_ITEMS: those that wait behind the first ones must not keep the page either.
        return [{"url": response.url, "n": n} for n in range(20 if page_of(response.url) == "2" else 1)]

    async def yield_and_wait(self, response: HtmlResponse) -> AsyncIterator[Any]:
        yield {"url": response.url}
        await never()

    async def wait(self, response: HtmlResponse) -> Any:
        await never()
        return [{"url": response.url}]

    async def item_scraped(self, item: Any) -> None:
        if page_of(item["url"]) == "7":
            await never()


class SilentPipeline:
    """Page 2."""

    async def process_item(self, item: Any) -> Any:
        if page_of(item["url"]) == "2":
            await maybe_deferred_to_future(Deferred())
        return item


class SilentDownload:
    """Page 5."""

    async def process_request(self, request: Request) -> None:
        if page_of(request.url) == "5":
            await never()


class SilentStart:
    """Takes one request of `start()`, or with the setting SILENT_START = 0 none, and waits."""

    def __init__(self, crawler: Crawler) -> None:
        self._most = crawler.settings.getint("SILENT_START")

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    async def process_start(self, start: AsyncIterator[Any]) -> AsyncIterator[Any]:
        if self._most:
            yield await anext(start)
        await never()


class SilentOutput:
    """Page 6."""

    async def process_spider_output(self, response: Response, result: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for one in result:
            if page_of(response.url) == "6":
                await never()
            yield one
