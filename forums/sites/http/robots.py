"""robots.txt, asked for once a day and obeyed by every page."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.utils.defer import maybe_deferred_to_future
from scrapy.utils.httpobj import urlparse_cached
from twisted.internet.defer import Deferred

from .robots_size import readable

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.robotstxt import RobotParser

KEEP_S = 24 * 3600.0
"""The time for which a robots.txt counts (RFC 9309, 2.4)."""


class RobotsTxt(RobotsTxtMiddleware):
    """Scrapy's, but that pages which wait for the same robots.txt are all held to it.

    In Scrapy 2.19 they wait on one Deferred by `asFuture`, which passes None on to the next one: from the third page that comes
    while robots.txt is on its way, none is held to it.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._read_at: dict[str, float] = {}

    async def robot_parser(self, request: Request) -> RobotParser | None:
        """The rules of the request's host; None where it has none."""
        netloc = urlparse_cached(request).netloc
        while isinstance(waiting := self._parsers.get(netloc), Deferred):
            await maybe_deferred_to_future(_beside(waiting))
        if time.monotonic() - self._read_at.get(netloc, float("-inf")) > KEEP_S:
            self._parsers.pop(netloc, None)
            self._read_at[netloc] = time.monotonic()
        return await super().robot_parser(request)

    async def _parse_robots(self, response: Response, netloc: str, request: Request) -> None:
        await super()._parse_robots(response.replace(body=readable(response.body)), netloc, request)


def _beside(waiting: Deferred[Any]) -> Deferred[None]:
    """Fires with `waiting`, and leaves it its result."""
    own: Deferred[None] = Deferred()

    def tell(result: Any) -> Any:
        own.callback(None)
        return result

    waiting.addBoth(tell)
    return own
