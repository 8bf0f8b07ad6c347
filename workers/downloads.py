"""How the fleet fetches pages: Scrapy's handler on aiohttp, which is its own where it runs without a reactor."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Self

from scrapy.core.downloader.handlers._aiohttp import AiohttpDownloadHandler
from scrapy.downloadermiddlewares.redirect import RedirectMiddleware
from scrapy.http import Headers

if TYPE_CHECKING:
    from aiohttp import ClientResponse
    from scrapy.crawler import Crawler


class DownloadHandler(AiohttpDownloadHandler):
    """A fifth more pages per second than with Twisted's client (`docs/decisions/0008-http-client.md`).

    Unlike that one it fails on a header that breaks the rules of HTTP; `DOWNLOAD_HANDLERS` puts the other one back for a spider.
    """

    experimental: ClassVar[bool] = False  # no warning at each start: what we need of it is tested with the versions we pin

    @staticmethod
    def _extract_headers(response: ClientResponse) -> Headers:
        """Byte for byte: old forums write Latin-1 or GBK into them, which is an error for the handler's own text."""
        return Headers(list(response.raw_headers))


class RedirectWithoutReferer(RedirectMiddleware):
    """Scrapy's, which without a RefererMiddleware does the same but warns of it at each start."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Without the search for that middleware."""
        one = cls(crawler.settings)
        one.crawler = crawler
        return one
