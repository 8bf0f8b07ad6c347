"""Spiders and settings of the link site, for crawls in tests: `SCRAPY_SETTINGS_MODULE=tests.support.link_settings scrapy crawl
links`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from scrapy.http import HtmlResponse

from redis_components.spiders import RedisSpider


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


class BrokenSpider(LinksSpider):
    """Understands every page but page 3."""

    name = "broken"

    def parse(self, response: HtmlResponse, **kwargs: Any) -> Iterator[Any]:
        if response.url.endswith("/3"):
            raise ValueError("page 3 has changed its looks")
        yield from super().parse(response)
