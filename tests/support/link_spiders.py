"""Spiders and settings of the link site, for crawls in tests: `SCRAPY_SETTINGS_MODULE=tests.support.link_settings scrapy crawl
links`.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, ClassVar, Self

import attrs
from scrapy import Field, Item, Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import CloseSpider, IgnoreRequest
from scrapy.http import HtmlResponse, TextResponse
from twisted.python.failure import Failure

from redis_components.scrapy_glue.internals import NotNow
from redis_components.spiders import RedisSpider
from tests.support.light_scrapy import COOKIES


class LinksSpider(RedisSpider):
    """Follows every link; one item for each page."""

    name = "links"

    def parse(self, response: HtmlResponse, **kwargs: Any) -> Iterator[Any]:
        yield {"url": response.url}
        yield from response.follow_all(css="a")


class LambdaSpider(RedisSpider):
    """Follows every link with callbacks that cannot be stored."""

    name = "lambdas"

    def parse(self, response: HtmlResponse, **kwargs: Any) -> Iterator[Any]:
        yield {"url": response.url}
        for link in response.css("a"):
            yield response.follow(link, callback=lambda found: self.parse(found))


class LambdaRedirectSpider(LambdaSpider):
    """The same, and each link is redirected first."""

    name = "lambda-redirects"

    def parse(self, response: HtmlResponse, **kwargs: Any) -> Iterator[Any]:
        yield {"url": response.url}
        for link in response.css("a::text"):
            yield response.follow(f"/to/{link.get()}", callback=lambda found: self.parse(found))


class LambdaTaskSpider(LambdaSpider):
    """The start task itself becomes requests that cannot be stored."""

    name = "lambda-tasks"

    def make_request_from_data(self, data: bytes) -> list[Request]:
        return [Request(f"{data.decode()}/{page}", callback=lambda found: self.parse(found)) for page in (2, 3)]


class LambdaBrokenSpider(LambdaSpider):
    """Page 3, which was kept in memory, is not understood."""

    name = "lambda-broken"

    def parse(self, response: HtmlResponse, **kwargs: Any) -> Iterator[Any]:
        if response.url.endswith("/3"):
            raise ValueError("page 3 has changed its looks")
        yield from super().parse(response)


class ClosingSpider(LinksSpider):
    """Closes in the middle of page 3, or with `-a at=task` of its start task, or not with `-a at=`."""

    name = "closing"
    at = "page"

    def make_request_from_data(self, data: bytes) -> Any:
        if self.at == "task":
            raise CloseSpider("enough")
        return super().make_request_from_data(data)

    def parse(self, response: HtmlResponse, **kwargs: Any) -> Iterator[Any]:
        for output in super().parse(response):
            yield output
            if self.at == "page" and response.url.endswith("/3"):
                raise CloseSpider("enough")


class FullDisk:
    """An item pipeline that closes the spider on page 3."""

    def process_item(self, item: Any) -> Any:
        if item["url"].endswith("/3"):
            raise CloseSpider("disk full")
        return item


class CountingSpider(LinksSpider):
    """Counts in every way that Scrapy's stats know, and finds page 1 again on each page."""

    name = "counting"

    def parse(self, response: HtmlResponse, **kwargs: Any) -> Iterator[Any]:
        stats = self.crawler.stats
        assert stats is not None
        page = int(response.url.rpartition("/")[2])
        stats.inc_value("my/sum", 0.25)
        stats.max_value("my/max", page)
        stats.min_value("my/min", page - 0.5)
        stats.set_value("my/when", datetime(2026, 1, 31, 12, tzinfo=UTC))
        stats.set_value("my/nothing", None)
        stats.set_value("my/text", "\ud800 \N{CHECK MARK}")
        yield from super().parse(response)
        yield response.follow("/1")


class BrokenSpider(LinksSpider):
    """Understands every page but page 3."""

    name = "broken"

    def parse(self, response: HtmlResponse, **kwargs: Any) -> Iterator[Any]:
        if response.url.endswith("/3"):
            raise ValueError("page 3 has changed its looks")
        yield from super().parse(response)


class SlowSpider(LinksSpider):
    """Computes for 5 s on page 1, with the reactor standing still."""

    name = "slow"

    def parse(self, response: HtmlResponse, **kwargs: Any) -> Iterator[Any]:
        if response.url.endswith("/1"):
            time.sleep(5)
        yield from super().parse(response)


class BadItemSpider(LinksSpider):
    """The item of page 3 cannot be serialized."""

    name = "bad-item"

    def parse(self, response: HtmlResponse, **kwargs: Any) -> Iterator[Any]:
        if response.url.endswith("/3"):
            yield {"url": response.url, "raw": object()}
        else:
            yield from super().parse(response)


class TenRequestsSpider(RedisSpider):
    """A start task of ten requests; SIGTERM comes while the engine takes the third."""

    name = "ten"
    _scheduled = 0

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.count, signals.request_scheduled)
        return spider

    def count(self) -> None:
        self._scheduled += 1
        if self._scheduled == 3:
            os.kill(os.getpid(), signal.SIGTERM)

    def make_request_from_data(self, data: bytes) -> list[Request]:
        return [Request(f"{data.decode()}/{page}") for page in range(1, 11)]

    def parse(self, response: HtmlResponse, **kwargs: Any) -> Iterator[Any]:
        yield {"url": response.url}


class RichSpider(RedisSpider):
    """One item for each answer, with what came along from the start task."""

    name = "rich"
    custom_settings: ClassVar[dict[str, Any]] = {"DOWNLOADER_MIDDLEWARES": COOKIES}

    def parse(self, response: TextResponse, **kwargs: Any) -> Iterator[Any]:
        yield {"by": "parse", "kwargs": kwargs, **response.json()}

    def parse_echo(self, response: TextResponse, **kwargs: Any) -> Iterator[Any]:
        assert response.request is not None
        meta = {name: response.meta[name] for name in ("job",) if name in response.meta}
        yield {"by": "parse_echo", "kwargs": kwargs, "meta": meta, "flags": response.request.flags, **response.json()}

    def failed(self, failure: Failure) -> Iterator[Any]:
        yield {"by": "failed", "url": failure.value.response.url}


class KeysSpider(LinksSpider):
    """Start tasks from two keys."""

    name = "keys"
    redis_key = ("%(name)s:urgent", "%(name)s:later")


class StartingSpider(Spider):
    """Not fed from Redis: thirty requests of its own, for Scrapy's own scheduler."""

    name = "starting"
    site = ""

    async def start(self) -> AsyncIterator[Any]:
        for page in range(1, 31):
            yield Request(f"{self.site}/{page}")

    def parse(self, response: HtmlResponse, **kwargs: Any) -> Iterator[Any]:
        yield {"url": response.url}


class DeadlySpider(LinksSpider):
    """Page 3 kills its process."""

    name = "deadly"

    def parse(self, response: HtmlResponse, **kwargs: Any) -> Iterator[Any]:
        if response.url.endswith("/3"):
            os.kill(os.getpid(), signal.SIGKILL)
        yield from super().parse(response)


class DropOdd:
    """Downloader middleware of a project: a page of an odd number is not asked for."""

    def process_request(self, request: Request) -> None:
        if request.url[-1] in "13579":
            raise IgnoreRequest("odd")


class CountNoPlace:
    """Downloader middleware: counts the requests that a crawler leased and had no place for, not those that a busy machine made
    late.
    """

    crawler: Crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        made = cls()
        made.crawler = crawler
        return made

    def process_exception(self, request: Request, exception: Exception) -> None:
        if isinstance(exception, NotNow) and "no place" in str(exception):
            self.crawler.stats.inc_value("test/no_place")


class FewSpider(LinksSpider):
    """Each process sends at most two requests at a time to a host."""

    name = "few"
    turn_by = "host"

    def most_at_once(self, value: str) -> int | None:
        return 2


class LaterSpider(RedisSpider):
    """Asks for another page of the site, 3 s after the first one."""

    name = "later"

    def parse(self, response: HtmlResponse, **kwargs: Any) -> Iterator[Any]:
        if not response.url.endswith("/later"):
            yield response.follow("/later", meta={"not_before": time.time() + 3})


class Row(Item):
    """Half-filled when it is put into `meta`, as in many tutorials."""

    url = Field()
    tags = Field()


@dataclass
class Data:
    """The same as a dataclass that computes: it is made again without its `__init__`."""

    tags: list[str]
    url: str = field(default="", init=False)

    def __post_init__(self) -> None:
        self.tags = [*self.tags, "made"]


@attrs.define(frozen=True)
class Frozen:
    """The same with attrs and slots."""

    tags: tuple[str, ...]


class PageMethod:
    """As scrapy-playwright has it."""

    def __init__(self, method: str, *args: Any) -> None:
        self.method, self.args = method, args


class MetaValuesSpider(LinksSpider):
    """Each link takes an object of one of four kinds along, and the item has what arrived."""

    name = "meta-values"

    def parse(self, response: HtmlResponse, **kwargs: Any) -> Iterator[Any]:
        item = response.meta.get("item")
        state = item["tags"] if isinstance(item, Row) else getattr(item, "tags", getattr(item, "args", ()))
        yield {"url": response.url, "kind": type(item).__name__, "state": list(state)}
        for link in response.css("a::text"):
            number = int(link.get())
            values = (Row(tags=["x"]), Data(["x"]), Frozen(("x",)), PageMethod("click", "x"))
            yield response.follow(f"/{number}", meta={"item": values[number % 4], "all": [Row(tags=[b"x"])]})


class StopMessageSpider(LinksSpider):
    """A start task closes the crawl."""

    name = "stop-message"

    def make_request_from_data(self, data: bytes) -> Any:
        if data == b"STOP":
            raise CloseSpider("asked to")
        return super().make_request_from_data(data)


class OldStartSpider(Spider):
    """Of the years before Scrapy 2.13, which now calls `start()` alone."""

    name = "old-start"
    custom_settings = {"MAX_IDLE_TIME_BEFORE_CLOSE": 1}  # noqa: RUF012 - the form that Scrapy wants

    def start_requests(self) -> Iterator[Request]:
        yield Request("http://127.0.0.1:1/")
