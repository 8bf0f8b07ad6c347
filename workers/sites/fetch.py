"""Fetching single pages outside a crawl: for `trawl sites`, and to see whether a site is well again.

As polite as a crawl: robots.txt, the site's headers and cookies, its delay; only the site's places see them.
"""

from __future__ import annotations

import asyncio
import re
import time
from types import TracebackType
from typing import Self
from urllib.parse import urljoin, urlsplit

import aiohttp
from multidict import CIMultiDictProxy
from protego import Protego
from scrapy.http import Headers, TextResponse
from scrapy.responsetypes import responsetypes
from yarl import URL

from redis_components.errors import TrawlError
from workers.user_agent import USER_AGENT

from .manners import headers_of
from .model import Site
from .places import place_of, places_of

TIMEOUT_S = 30.0
MAX_BYTES = 8 * 1024 * 1024
"""No forum page is larger."""
_MAX_REDIRECTS = 10
_BINARY = re.compile(r"(?:image|audio|video|font)/|application/(?:octet-stream|zip|pdf)")
_REDIRECTS = frozenset({301, 302, 303, 307, 308})

_Answer = tuple[int, CIMultiDictProxy[str], bytes]


class FetchFailed(TrawlError):
    """A page could not be fetched; the message names its URL and the reason."""


def fetch(url: str, *, site: Site | None = None) -> TextResponse:
    """One page, whatever its status. Raises FetchFailed: robots.txt forbids it, no answer, too large, no text, or a redirect to
    a place that the site's file does not name.
    """

    async def one() -> TextResponse:
        async with Visitor(site) as visitor:
            return await visitor.get(url)

    return asyncio.run(one())


class Visitor:
    """Fetches several pages, one after the other. Without a site: as a stranger, with the default delay."""

    def __init__(self, site: Site | None = None, *, obey_robots: bool = True) -> None:
        self._obey_robots = site.politeness.obey_robots if site else obey_robots
        self._site = site
        self._places = places_of(site) if site else frozenset()
        self._robots: dict[str, Protego | None] = {}
        self._next_at = 0.0
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        timeout = aiohttp.ClientTimeout(total=TIMEOUT_S)
        jar = aiohttp.DummyCookieJar()  # what a site sets is of no use for reading
        self._session = aiohttp.ClientSession(timeout=timeout, cookie_jar=jar, headers={"User-Agent": USER_AGENT})
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._session:
            await self._session.close()

    async def get(self, url: str) -> TextResponse:
        """One page, whatever its status, after redirects."""
        asked = url
        for _ in range(_MAX_REDIRECTS):
            self._refuse_foreign(asked, url)
            if self._obey_robots and not await self._robots_allow(url):
                how = "set obey_robots = false under [politeness]" if self._site else "say --ignore-robots"
                raise FetchFailed(f"{url}: robots.txt forbids it: ask the site's owners, and if they agree, {how}")
            status, headers, body = await self._request(url)
            target = headers.get("Location")
            if status not in _REDIRECTS or not target:
                return _response(url, status, headers, body)
            url = urljoin(url, target)
        raise FetchFailed(f"{asked}: more than {_MAX_REDIRECTS} redirects, the last to {url}")

    def _refuse_foreign(self, asked: str, url: str) -> None:
        if urlsplit(url).scheme not in ("http", "https"):
            raise FetchFailed(f"{asked}: {url!r} is no address of a web page: write http://… or https://…")
        if self._site is not None and place_of(url) not in self._places:
            how = f"it redirects to {url}, which" if url != asked else "it"
            raise FetchFailed(f"{asked}: {how} is at no place of site {self._site.name!r}: add it to `also_allowed`")

    async def _robots_allow(self, url: str) -> bool:
        parts = urlsplit(url)
        origin = f"{parts.scheme}://{parts.netloc}"
        if origin not in self._robots:
            status, _, body = await self._request(f"{origin}/robots.txt")
            self._robots[origin] = Protego.parse(body.decode("utf-8", "replace")) if status == 200 else None
        rules = self._robots[origin]
        return rules is None or bool(rules.can_fetch(url, self._headers(url).get("User-Agent", USER_AGENT)))

    def _headers(self, url: str) -> dict[str, str]:
        return headers_of(self._site) if self._site and place_of(url) in self._places else {}

    async def _request(self, url: str) -> _Answer:
        assert self._session
        await asyncio.sleep(max(0.0, self._next_at - time.monotonic()))
        try:
            async with self._session.get(URL(url, encoded=True), headers=self._headers(url), allow_redirects=False) as answer:
                body = bytearray()
                async for chunk in answer.content.iter_chunked(65536):
                    body += chunk
                    if len(body) > MAX_BYTES:
                        raise FetchFailed(f"{url}: larger than {MAX_BYTES // 1024**2} MiB")
                return answer.status, answer.headers, bytes(body)
        except aiohttp.ClientConnectorError as exc:
            raise FetchFailed(f"{url}: nothing answers at {URL(url).origin()}: {exc.strerror or exc.os_error}") from exc
        except (aiohttp.ClientError, TimeoutError, ValueError, UnicodeError) as exc:
            reason = f"no answer within {TIMEOUT_S:.0f} s" if isinstance(exc, TimeoutError) else str(exc) or type(exc).__name__
            raise FetchFailed(f"{url}: {reason}") from exc
        finally:
            self._next_at = time.monotonic() + (self._site.politeness.delay_s if self._site else 0.5)


def _response(url: str, status: int, headers: CIMultiDictProxy[str], body: bytes) -> TextResponse:
    given = Headers()
    for name, value in headers.items():
        given.appendlist(name, value)
    given.pop("Content-Encoding", None)  # undone
    kind = responsetypes.from_args(headers=given, url=url, body=body)
    response = kind(url, status=status, headers=given, body=body)
    if not isinstance(response, TextResponse) or _BINARY.match(headers.get("Content-Type", "")):
        raise FetchFailed(f"{url}: no text: {headers.get('Content-Type', 'no content type')}, {len(body)} bytes")
    return response
