"""A candidate for the fleet's settings: what the exporter shows of the downloader, and no more.

Scrapy's DownloaderStats writes each request out as HTTP text only to count its bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.statscollectors import StatsCollector


class LeanStats:
    """Counts requests, responses by status, bytes of bodies, and exceptions."""

    def __init__(self, stats: StatsCollector) -> None:
        self._count = stats.inc_value
        self._by_status: dict[int, str] = {}

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """No settings."""
        assert crawler.stats is not None
        return cls(crawler.stats)

    def process_request(self, request: Request) -> None:  # noqa: ARG002
        """One request."""
        self._count("downloader/request_count")

    def process_response(self, request: Request, response: Response) -> Response:  # noqa: ARG002
        """One response."""
        self._count("downloader/response_count")
        self._count(self._by_status.setdefault(response.status, f"downloader/response_status_count/{response.status}"))
        self._count("downloader/response_bytes", len(response.body))
        return response

    def process_exception(self, request: Request, exception: Exception) -> None:  # noqa: ARG002
        """One exception."""
        self._count("downloader/exception_count")
