"""Fetches single pages outside a crawl: for `trawl sites`, and to probe a site.

As polite as a crawl: robots.txt, the site's delay, its limits, which these requests count against and wait for, and its headers
and cookies where its file trusts a place with them.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self
from urllib.parse import urljoin, urlsplit

import aiohttp
import redis
from multidict import CIMultiDictProxy
from protego import Protego
from scrapy.http import Headers, TextResponse, XmlResponse
from scrapy.responsetypes import responsetypes
from w3lib.url import safe_url_string
from yarl import URL

from forum_reader import errors
from forum_reader.definition.page_requests import THIS_MACHINE, PageRequest, elsewhere, place_of
from forum_reader.definition.site import Site
from forum_reader.errors import UnreadablePage
from forum_reader.reading.markup_limits import check_attributes
from forum_reader.reading.parse_body import in_web_encoding
from forums.sites.load import allowance_of
from redis_components.errors import TrawlError
from redis_components.politeness.limits import LanePermits, default_lane, lane_names, retry_after_s
from redis_components.politeness.robots_cache import readable
from redis_components.server.printable import in_words
from workers.http.client import GuardedConnector, PrivateAddress, allowing
from workers.http.public_addresses import Allowance, private_addresses_allowed

from .politeness import USER_AGENT, headers_for, user_agent

LONGEST_WAIT_S = 10.0
"""Seconds to wait for a turn; a site whose limits allow no request for longer is not visited now."""
ASKS_S = 0.1
"""Between two questions: who does not ask loses its turn to the crawls of the site (`lib/pacing.lua`)."""

logger = logging.getLogger(__name__)


class NotNow(TrawlError):
    """The limits of the site allow no request now; `wait_s`: the least time to wait."""

    def __init__(self, message: str, wait_s: float) -> None:
        super().__init__(message)
        self.wait_s = wait_s


class VisitLimits:
    """Limits of one visitor, which sends one request at a time. `site`: name of the site's file, if any; `lane` is from it."""

    def __init__(self, permits: LanePermits, site: str | None = None, lane: str | None = None) -> None:
        self._permits = permits
        self._meta: dict[str, Any] = {"site": site, "lane": lane}
        self._lane = ""

    async def begin(self, url: str) -> None:
        """Wait for the time at which this request may be sent. Raises NotNow."""
        names, waited = list(lane_names(self._meta, url)), 0.0
        while True:
            permit = await self._quietly(lambda: self._permits.ask(names))
            if permit is None:
                return
            if not permit.is_granted and waited + permit.wait_s > LONGEST_WAIT_S:
                wait = f"{permit.wait_s:.0f} s" if permit.wait_s < 120 else f"{permit.wait_s / 60:.0f} min"
                raise NotNow(
                    f"{url}: {permit.lane} may not be asked for {wait} by its limits: trawl limit shows why", permit.wait_s
                )
            pause_s = permit.wait_s if permit.is_granted else min(permit.wait_s + 0.01, ASKS_S)
            await asyncio.sleep(pause_s)
            waited += pause_s
            if permit.is_granted:
                self._lane = permit.lane
                return

    async def end(self) -> None:
        """End the request."""
        lane, self._lane = self._lane, ""
        if lane:
            await self._quietly(lambda: self._permits.end(lane))

    async def refused(self, url: str, seconds: float | None) -> None:
        """Report the site's refusal, which every crawler obeys."""
        lane = self._lane or default_lane(self._meta, url)
        if lane:
            await self._quietly(lambda: self._permits.refused(lane, seconds))

    async def _quietly(self, call: Callable[[], Any]) -> Any:
        """Call Redis; None if it fails: no crawler runs without it, and a page may be fetched with the visitor's own delay."""
        try:
            return await asyncio.to_thread(call)
        except redis.RedisError as error:
            logger.debug("limits of the site cannot be read from Redis: %s", error)
            return None


TIMEOUT_S = 30.0
MAX_BYTES = 8 * 1024 * 1024
"""Forum pages are smaller."""
STRANGER_DELAY_S, LONGEST_DELAY_S = 0.5, 30.0
"""Seconds between two requests without a site file; the limit of `Crawl-delay` in robots.txt."""
_MAX_REDIRECTS = 10
_GZIP = b"\x1f\x8b"
_BINARY = re.compile(r"(?:image|audio|video|font)/|application/(?:octet-stream|zip|pdf)")
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_SAME_METHOD = frozenset({307, 308})

_Answer = tuple[int, CIMultiDictProxy[str], bytes]


class FetchFailed(errors.FetchFailed, TrawlError):
    """A page could not be fetched; the message names its URL and the reason."""


class Visitor:
    """Fetches several pages, one after the other. Without a site: with the default delay and User-Agent.

    It connects to public addresses. Private ones must be in the site's file or, without a site, in the first URL; names that
    resolve to them need `allow_private`.
    """

    def __init__(
        self,
        site: Site | None = None,
        *,
        obey_robots: bool = True,
        allow_private: bool = False,
        agent: str = USER_AGENT,
        limits: VisitLimits | None = None,
    ) -> None:
        self._limits = limits
        self._delay_s = site.politeness.crawler_delay_s if site else STRANGER_DELAY_S
        self._default_agent = agent
        self._obey_robots = site.politeness.obey_robots if site else obey_robots
        self._site = site
        self._robots: dict[str, Protego | None] = {}
        self._next_at = 0.0
        self._everything = allow_private or private_addresses_allowed() or (site is not None and site.allow_private)
        self._hosts = allowance_of(site).hosts if site else None
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        timeout = aiohttp.ClientTimeout(total=TIMEOUT_S)
        jar = aiohttp.DummyCookieJar()  # cookies are of no use for reading
        connector = GuardedConnector()
        self._session = aiohttp.ClientSession(
            connector=connector, timeout=timeout, cookie_jar=jar, headers={"User-Agent": self._default_agent}
        )
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._session:
            await self._session.close()

    async def get(self, url: str | PageRequest) -> TextResponse:
        """Fetch one page, of any status, after redirects."""
        page = PageRequest(url=url) if isinstance(url, str) else url
        asked = url = page.url
        if self._hosts is None:  # the first URL is the user's
            host = place_of(url)[1] or ""
            self._hosts = THIS_MACHINE if host in THIS_MACHINE else frozenset({host})
        for _ in range(_MAX_REDIRECTS):
            self._refuse_foreign(asked, url)
            if self._obey_robots and not await self._robots_allow(url):
                how = "set obey_robots = false under [politeness]" if self._site else "use --ignore-robots"
                raise FetchFailed(f"{url}: robots.txt forbids it: ask the site's owners, and if they agree, {how}")
            status, headers, body = await self._request(url, page)
            target = headers.get("Location")
            if status not in _REDIRECTS or not target:
                return _response(url, status, headers, body)
            if status not in _SAME_METHOD:
                page = PageRequest(url=url)
            url = urljoin(url, target)
            url = url if url.isascii() else safe_url_string(url)  # as a crawler does
        raise FetchFailed(f"{asked}: more than {_MAX_REDIRECTS} redirects, the last to {url}")

    def _refuse_foreign(self, asked: str, url: str) -> None:
        if not is_web_address(url):
            raise FetchFailed(f"{asked}: {url!r} is not the URL of a web page: write http://… or https://…")
        if self._site is not None and (wrong := elsewhere(self._site, url, asked if url != asked else None)) is not None:
            raise FetchFailed(wrong)

    async def _robots_allow(self, url: str) -> bool:
        parts = urlsplit(url)
        origin = f"{parts.scheme}://{parts.netloc}"
        if origin not in self._robots:
            status, _, body = await self._request(f"{origin}/robots.txt")
            if status == 429 or status >= 500:  # RFC 9309, 2.3.1.4
                raise FetchFailed(
                    f"{url}: robots.txt is answered with status {status}, so nothing may be fetched: try again later"
                )
            self._robots[origin] = Protego.parse(readable(body).decode("utf-8", "replace")) if status == 200 else None
            self._obey_delay(self._robots[origin])
        rules = self._robots[origin]
        return rules is None or bool(rules.can_fetch(url, self._agent()))

    def _obey_delay(self, rules: Protego | None) -> None:
        wanted = (rules.crawl_delay(self._agent()) if rules else None) or 0.0
        self._delay_s = max(self._delay_s, min(wanted, LONGEST_DELAY_S))

    def _agent(self) -> str:
        return (user_agent(self._site) if self._site else None) or self._default_agent

    def _headers(self, url: str) -> dict[str, str]:
        return (headers_for(self._site, url) if self._site else {}) or {"User-Agent": self._agent()}

    async def _request(self, url: str, page: PageRequest | None = None) -> _Answer:
        await asyncio.sleep(max(0.0, self._next_at - time.monotonic()))
        if self._limits is None:
            return await self._send(url, page)
        await self._limits.begin(url)
        try:
            status, headers, body = await self._send(url, page)
            after_s = retry_after_s(headers.get("Retry-After"), headers.get("Date"))
            if status == 429 or (status == 503 and after_s is not None):
                await self._limits.refused(url, after_s)
        finally:
            await self._limits.end()
        return status, headers, body

    async def _send(self, url: str, page: PageRequest | None) -> _Answer:
        assert self._session
        page = page or PageRequest(url=url)
        allowance = Allowance(everything=self._everything, hosts=self._hosts or frozenset())
        try:
            with allowing(allowance):
                answer = await self._session.request(
                    page.method,
                    _target(url),
                    headers=self._headers(url) | page.headers,
                    data=page.body.encode() or None,
                    allow_redirects=False,
                )
            async with answer:
                body = bytearray()
                async for chunk in answer.content.iter_chunked(65536):
                    body += chunk
                    if len(body) > MAX_BYTES:
                        raise FetchFailed(f"{url}: larger than {MAX_BYTES // 1024**2} MiB")
                return answer.status, answer.headers, bytes(body)
        except PrivateAddress as exc:
            raise FetchFailed(f"{url}: {exc}{'' if self._site else ', or use --allow-private'}") from exc
        except aiohttp.ClientConnectorDNSError as exc:
            raise FetchFailed(f"{url}: the name {exc.host} is not resolved: {exc.strerror or exc.os_error}") from exc
        except aiohttp.ClientConnectorError as exc:
            raise FetchFailed(f"{url}: nothing answers at {URL(url).origin()}: {in_words(exc.os_error)}") from exc
        except (aiohttp.ClientError, TimeoutError, ValueError, IndexError) as exc:  # the last: yarl's, of `http://[::1]@/`
            raise FetchFailed(f"{url}: {_reason(exc)}") from exc
        finally:
            self._next_at = time.monotonic() + self._delay_s


def _reason(error: Exception) -> str:
    match error:
        case TimeoutError():
            return f"no answer within {TIMEOUT_S:.0f} s"
        case aiohttp.ClientPayloadError():
            return "the server broke off its response"
        case aiohttp.ClientResponseError():
            return f"the server does not speak HTTP ({error.message.strip().partition(':')[0].lower()})"
    return in_words(error)


def _target(url: str) -> URL:
    """Return the URL unchanged; of an international name the form in which places are compared."""
    exact = URL(url, encoded=True)
    return exact if (exact.raw_host or "").isascii() else URL(url)


def is_web_address(url: str) -> bool:
    """Return True if a URL is http or https, with a host and a possible port."""
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # such as a port of 99999
        return False


def _response(url: str, status: int, headers: CIMultiDictProxy[str], body: bytes) -> TextResponse:
    given = Headers()
    for name, value in headers.items():
        given.appendlist(name, value)
    given.pop("Content-Encoding", None)  # the body is decoded
    kind = responsetypes.from_args(headers=given, url=url, body=body)
    response = kind(url, status=status, headers=given, body=body)
    if body.startswith(_GZIP) and urlsplit(url).path.endswith(".gz"):  # a compressed sitemap, decompressed by its reader
        return XmlResponse(url, status=status, headers=given, body=body)
    if not isinstance(response, TextResponse) or _BINARY.match(headers.get("Content-Type", "")):
        raise FetchFailed(f"{url}: no text: {headers.get('Content-Type', 'no content type')}, {len(body)} bytes")
    response = in_web_encoding(response)
    if "json" not in headers.get("Content-Type", ""):
        try:
            check_attributes(response.text)
        except UnreadablePage as error:
            raise FetchFailed(f"{url}: {error}") from None
    return response
