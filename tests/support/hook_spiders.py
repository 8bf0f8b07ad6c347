"""Spiders that override what scrapy-redis lets them override: all in one process, each fed from its own key.

python -m tests.support.hook_spiders SITE REDIS_URL SPIDER...
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Any, ClassVar

from scrapy import Request, Spider
from scrapy.crawler import AsyncCrawlerProcess, Crawler
from scrapy.exceptions import DontCloseSpider
from scrapy.http import Response
from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule

from redis_components.pipelines import RedisPipeline
from redis_components.spiders import RedisCrawlSpider, RedisMixin, RedisSpider
from tests.support.light_scrapy import DOWNLOADER_MIDDLEWARES_BASE, EXTENSIONS_BASE


class Hooked(RedisSpider):
    """One item for each page, and the site's address for whoever makes requests of its own."""

    site = ""

    def parse(self, response: Response, **kwargs: Any) -> Iterator[Any]:
        yield {"url": response.url}


class OwnFormat(Hooked):
    name = "own-format"

    def make_request_from_data(self, data: bytes) -> Any:
        if data == b"nothing":
            return None
        if data == b"an item":
            return [{"url": self.site}]
        return [Request(f"{self.site}/{page}", dont_filter=True) for page in data.decode().split(",")]


class OwnFetch(Hooked):
    """As many spiders in the wild: pops one task after the other; the second call fails."""

    name = "own-fetch"
    calls = 0

    def next_requests(self) -> Iterator[Request]:
        self.calls += 1
        if self.calls == 2:
            raise RuntimeError("the second call fails")
        found = 0
        while found < self.redis_batch_size and (data := self.server.lpop(self.redis_key)):
            yield self.make_request_from_data(data)
            found += 1


class OwnFetchData(Hooked):
    name = "own-fetch-data"

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Any:
        spider = super().from_crawler(crawler, *args, **kwargs)
        spider.fetch_data = lambda key, number: spider.server.rpop(key, number) or ()
        return spider


class OwnScheduling(Hooked):
    name = "own-scheduling"
    scheduled = 0

    def schedule_next_requests(self) -> None:
        for request in self.next_requests():
            self.scheduled += 1
            self.crawler.engine.crawl(request)

    def closed(self, reason: str) -> None:
        self.logger.info("%s scheduled %d", self.name, self.scheduled)


class OwnIdle(Hooked):
    """Closes when it was asked three times; fetches in vain, because the tasks are fed beside it."""

    name = "own-idle"
    asked = 0

    def spider_idle(self) -> None:
        self.asked += 1
        self.schedule_next_requests()
        if self.asked < 3 or self.server.llen(self.redis_key):
            raise DontCloseSpider


class OwnStart(Hooked):
    """Logs in first, and knows nothing of start tasks."""

    name = "own-start"

    async def start(self) -> AsyncIterator[Any]:
        yield Request(f"{self.site}/100", dont_filter=True)


class OwnStartAndIdle(OwnStart):
    """Takes tasks whenever it is asked whether it may close."""

    name = "own-start-and-idle"

    def spider_idle(self) -> None:
        self.schedule_next_requests()
        super().spider_idle()


class OwnStartRequests(Hooked):
    """Written for a Scrapy that called this."""

    name = "own-start-requests"

    def start_requests(self) -> Iterable[Any]:
        yield Request(f"{self.site}/100", dont_filter=True)
        yield from super().start_requests()


class Mixed(RedisMixin, Spider):
    name = "mixed"

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Any:
        spider = super().from_crawler(crawler, *args, **kwargs)
        spider.setup_redis(crawler)
        return spider

    def parse(self, response: Response, **kwargs: Any) -> Iterator[Any]:
        yield {"url": response.url}


class MixedCrawl(RedisMixin, CrawlSpider):
    """The other place at which mixins call `setup_redis`."""

    name = "mixed-crawl"
    rules: ClassVar[Any] = (Rule(LinkExtractor(allow=r"/[67]$"), callback="parse_page"),)

    def _set_crawler(self, crawler: Crawler) -> None:
        super()._set_crawler(crawler)
        RedisMixin.setup_redis(self, crawler)

    def parse_page(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url}


class Rules(RedisCrawlSpider):
    name = "rules"
    rules = MixedCrawl.rules

    def parse_page(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url}


class ScrapysScheduler(Hooked):
    """Fed by scrapy-redis's ways, under Scrapy's own scheduler."""

    name = "scrapys-scheduler"
    custom_settings: ClassVar[Any] = {
        "SCHEDULER": "scrapy.core.scheduler.Scheduler",
        "DUPEFILTER_CLASS": "scrapy.dupefilters.RFPDupeFilter",
    }


class PipelineByParity(RedisPipeline):
    """Items to several lists."""

    def item_key(self, item: Any, spider: Spider) -> str:
        return f"{super().item_key(item, spider)}:{int(item['url'].rpartition('/')[2]) % 2}"


class OwnItemKey(Hooked):
    name = "own-item-key"
    custom_settings: ClassVar[Any] = {"ITEM_PIPELINES": {"tests.support.hook_spiders.PipelineByParity": 300}}


class PipelineThatPushes(RedisPipeline):
    """Stores items in a way of its own, as seen in the wild; the one of page 3 fails."""

    def _process_item(self, item: Any, spider: Spider) -> Any:
        if item["url"].endswith("/3"):
            raise ValueError("page 3 has no price")
        self.server.hset(f"{spider.name}:latest", item["url"], 1)
        return super()._process_item(item, spider)


class OwnPush(Hooked):
    name = "own-push"
    custom_settings: ClassVar[Any] = {"ITEM_PIPELINES": {"tests.support.hook_spiders.PipelineThatPushes": 300}}


class NoSetup(RedisMixin, Spider):
    name = "no-setup"

    def parse(self, response: Response, **kwargs: Any) -> None:
        """Never called."""


SPIDERS = {
    cls.name: cls
    for cls in (
        *(OwnFormat, OwnFetch, OwnFetchData, OwnScheduling, OwnIdle, OwnStart, OwnStartAndIdle, OwnStartRequests),
        *(Mixed, MixedCrawl, Rules, ScrapysScheduler, OwnItemKey, OwnPush, NoSetup),
    )
}


def main(site: str, redis_url: str, names: list[str]) -> None:
    process = AsyncCrawlerProcess(
        {
            "REDIS_URL": redis_url,
            "SCHEDULER": "redis_components.scheduler.Scheduler",
            "DUPEFILTER_CLASS": "redis_components.dupefilter.RFPDupeFilter",
            "ITEM_PIPELINES": {"redis_components.pipelines.RedisPipeline": 300},
            "MAX_IDLE_TIME_BEFORE_CLOSE": 1,
            "CONCURRENT_REQUESTS": 2,
            "EXTENSIONS_BASE": EXTENSIONS_BASE,
            "DOWNLOADER_MIDDLEWARES_BASE": DOWNLOADER_MIDDLEWARES_BASE,
            "CONCURRENT_ITEMS": 4,
            "LOG_LEVEL": "INFO",
        }
    )
    for name in names:
        process.crawl(SPIDERS[name], site=site)
    process.start()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
