"""Signs each request of a crawl, for any spider, where the fleet has a key for it (`workers/http/bot_identity.py`).

DOWNLOADER_MIDDLEWARES = {"workers.http.sign_requests.SignRequests": 960}
"""

from __future__ import annotations

from typing import Self

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.http import Response

from .bot_identity import HEADERS, BotIdentity, bot_identity


class SignRequests:
    """Innermost downloader middleware: what it adds is of one request alone, and never written to Redis."""

    def __init__(self, identity: BotIdentity) -> None:
        self._identity = identity

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:  # noqa: ARG003 - so it is called
        """Return the middleware. Raises NotConfigured where there is no key, ConfigError for a wrong one."""
        identity = bot_identity()
        if identity is None:
            raise NotConfigured
        return cls(identity)

    def process_request(self, request: Request) -> None:
        """Sign it."""
        for name, value in self._identity.headers_for(request.url, request.method).items():
            request.headers[name] = value

    def process_response(self, request: Request, response: Response) -> Response:
        """Take the signature off."""
        self._unsigned(request)
        return response

    def process_exception(self, request: Request, exception: Exception) -> None:  # noqa: ARG002 - so it is called
        """Take the signature off."""
        self._unsigned(request)

    @staticmethod
    def _unsigned(request: Request) -> None:
        for name in HEADERS:
            request.headers.pop(name, None)
