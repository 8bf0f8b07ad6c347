"""A process or a machine without a free descriptor: no page is to blame, so a download waits instead of being given up."""

from __future__ import annotations

import asyncio
import errno
import logging
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, ClassVar, Self

import aiohttp
from scrapy.downloadermiddlewares.redirect import RedirectMiddleware
from scrapy.http import Headers
from yarl import URL

from workers.http.connector import BoundedConnector, GuardedConnector, allowing
from workers.http.public_addresses import allowance_by, allowance_of

from .scrapy_internals import AiohttpDownloadHandler, ClientResponse

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response


AGAIN_S = 0.5
LOG_AGAIN_S = 60.0
_NONE_LEFT = frozenset({errno.EMFILE, errno.ENFILE})
_logged_at = float("-inf")

logger = logging.getLogger(__name__)


def none_left(error: BaseException | None) -> bool:
    """Return True if an error, or its cause, is "too many open files"."""
    for _ in range(10):
        if error is None:
            return False
        if isinstance(error, OSError) and error.errno in _NONE_LEFT:
            return True
        error = error.__cause__ or error.__context__
    return False


async def wait_for_one() -> None:
    """Wait a little; log the reason once a minute."""
    global _logged_at
    if time.monotonic() - _logged_at > LOG_AGAIN_S:
        _logged_at = time.monotonic()
        logger.error("too many open files: downloads wait until some are closed; raise the limit (ulimit -n, LimitNOFILE)")
    await asyncio.sleep(AGAIN_S)


RESOLVING = 64
"""Names that are asked for at one time; of Python's own six threads on two cores as many names without an answer hold all."""


class DownloadHandler(AiohttpDownloadHandler):
    """A fifth more pages per second than with Twisted's client (`docs/decisions/0008-http-client.md`).

    Unlike that one it fails on a header that breaks the rules of HTTP; `DOWNLOAD_HANDLERS` puts the other one back for a spider.
    It connects to public addresses, to those that site files name, and to those of ALLOW_PRIVATE_ADDRESSES; outside of the fleet,
    where that is not set, to any.
    """

    experimental: ClassVar[bool] = False  # no warning at each start: the parts in use are tested with the pinned versions

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._allowed = allowance_by(crawler.settings)
        connector = BoundedConnector if self._allowed.everything else GuardedConnector
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(RESOLVING, thread_name_prefix="resolving"))
        self._session.detach()  # from a connector that has connected to nothing yet
        self._session = aiohttp.ClientSession(
            # Scrapy's downloader limits concurrency: a crawl of many sites has more where some wait long (`long_waits.py`).
            connector=connector(local_addr=self._bind_address, limit=0, limit_per_host=self._pool_size_per_host),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            response_class=ClientResponse,
            skip_auto_headers=("Accept", "Accept-Encoding", "Content-Type", "User-Agent"),
        )

    async def download_request(self, request: Request) -> Response:
        """Download the response; connections are made as the request may. Where no descriptor is left it waits for one."""
        while True:
            try:
                with allowing(allowance_of(request) | self._allowed):
                    return await super().download_request(request)
            except Exception as error:
                if not none_left(error):
                    raise
            await wait_for_one()

    @staticmethod
    def _extract_headers(response: ClientResponse) -> Headers:
        """Copy the headers byte for byte: old forums write Latin-1 or GBK into them, which is an error for the handler's own
        text.
        """
        return Headers(list(response.raw_headers))


class RedirectWithoutReferer(RedirectMiddleware):
    """Scrapy's, which without a RefererMiddleware does the same but warns of it at each start.

    A request's own Cookie and Authorization stay behind where a redirect leads to another scheme, host or port; Scrapy's lets a
    Cookie go on to another port, and from http to https.
    """

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Create the middleware without Scrapy's search for its counterpart."""
        one = cls(crawler.settings)
        one.crawler = crawler
        return one

    def _build_redirect_request(self, source_request: Request, response: Response, *, url: str, **kwargs: Any) -> Request:
        redirected = super()._build_redirect_request(source_request, response, url=url, **kwargs)
        if not _is_same_place(source_request.url, redirected.url):
            for header in ("Cookie", "Authorization"):
                redirected.headers.pop(header, None)
        return redirected


def _is_same_place(one: str, other: str) -> bool:
    try:
        return URL(one).origin() == URL(other).origin()
    except (ValueError, IndexError):  # such as a scheme without a host, or `http://[::1]@/`, which cannot be fetched
        return False
