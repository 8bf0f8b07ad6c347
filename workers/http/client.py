"""HTTP client of crawlers, probes and webhooks: it connects to public addresses, and to those that the configuration allows.

Apart from `public_addresses.py`, as it loads Scrapy and aiohttp, which reading a site file does not. A process or a machine
without a free descriptor is not the fault of a page: a crawler's download waits for one.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from http import HTTPStatus
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self
from weakref import WeakKeyDictionary

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.http_exceptions import HttpProcessingError
from scrapy.core.downloader.handlers._aiohttp import AiohttpDownloadHandler
from scrapy.core.downloader.handlers._aiohttp import _ClientResponse as ClientResponse
from scrapy.downloadermiddlewares.redirect import RedirectMiddleware
from scrapy.exceptions import CannotResolveHostError
from scrapy.http import Headers
from yarl import URL

from redis_components.server.printable import in_words

from .public_addresses import NOTHING, Allowance, allowance_by, is_public, parsed

if TYPE_CHECKING:
    from aiohttp import ClientRequest, ClientTimeout
    from aiohttp.abc import ResolveResult
    from aiohttp.connector import Connection
    from aiohttp.tracing import Trace
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

logger = logging.getLogger(__name__)


class PrivateAddress(CannotResolveHostError):
    """A host is, or resolves to, an address that is not public. For Scrapy it is a name without an answer: tried again, and
    counted for the site's breaker.
    """

    def __init__(self, host: str, addresses: Iterable[str]) -> None:
        self.addresses = ", ".join(sorted(set(addresses)))
        if self.addresses == host:
            why = "is not a public address, and neither a site file nor ALLOW_PRIVATE_ADDRESSES names it"
        else:
            why = f"resolves to {self.addresses}, not to a public address: if that is meant, {_FIX}"
        super().__init__(f"{host} {why}")


MOST_INTERIM = 16
"""Responses of 1xx before one that is final. Servers send one or two (100 Continue, 103 Early Hints)."""


class BoundedResponses(ResponseHandler):
    """aiohttp's protocol of a connection, which ends where there are more."""

    _interim = 0

    def feed_data(self, data: Any, size: int = 0) -> None:
        """Receive a parsed message: the head of a response, and its body's stream."""
        code = data[0].code
        if not HTTPStatus.CONTINUE <= code < HTTPStatus.OK or code == HTTPStatus.SWITCHING_PROTOCOLS:
            self._interim = 0
            super().feed_data(data, size)
            return
        self._interim += 1
        if self._interim <= MOST_INTERIM:
            super().feed_data(data, size)
        elif self._interim == MOST_INTERIM + 1:
            self.set_exception(HttpProcessingError(code=400, message=f"more than {MOST_INTERIM} responses of 1xx"))
            if self.transport is not None:
                self.transport.abort()


class BoundedConnector(aiohttp.TCPConnector):
    """aiohttp's, with such connections."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._factory = partial(BoundedResponses, loop=self._loop)  # type: ignore[assignment]  # a subclass of what it makes


_FIX = "set allow_private = true in the site's file, or name the host in ALLOW_PRIVATE_ADDRESSES"
NAME_S = 10.0
"""Longest time to resolve a name: with several name servers that do not answer the system takes up to 30 s."""

_current: ContextVar[Allowance] = ContextVar("allowance", default=NOTHING)


@contextmanager
def allowing(allowance: Allowance) -> Iterator[None]:
    """Apply an allowance to the connections that this task makes in the block."""
    token = _current.set(allowance)
    try:
        yield
    finally:
        _current.reset(token)


def may_connect(allowance: Allowance, host: str, address: str) -> bool:
    """Return True if `address` may be used for `host`, which is that address, or a name that resolved to it."""
    host = host.lower()
    if allowance.everything or host in allowance.trusted or is_public(address):
        return True
    if host not in allowance.hosts:
        return False
    if host == "localhost" or host.endswith(".localhost"):
        return parsed(address) is not None and ip_address(address).is_loopback
    named = parsed(host)
    return named is not None and named == parsed(address)


class GuardedConnector(BoundedConnector):
    """aiohttp's, which connects to what `allowing` allows around it, to a proxy, too, and to public addresses.

    A name that resolves to both kinds is reached by its public addresses.
    """

    async def _resolve_host(self, host: str, port: int, traces: Sequence[Trace] | None = None) -> list[ResolveResult]:
        """Return the addresses to connect to; `host` may be an address itself. Raises PrivateAddress if none may be used."""
        try:
            async with asyncio.timeout(NAME_S):
                found = await super()._resolve_host(host, port, traces=traces)
        except TimeoutError as error:  # with a number: aiohttp takes it for a name that was not resolved
            raise OSError(errno.ETIMEDOUT, f"no name server answered within {NAME_S:g} s") from error
        allowance = _current.get()
        usable = [one for one in found if may_connect(allowance, host, one["host"])]
        if found and not usable:
            raise PrivateAddress(host, [one["host"] for one in found])
        return usable

    async def connect(self, req: ClientRequest, traces: list[Trace], timeout: ClientTimeout) -> Connection:  # noqa: ASYNC109 - aiohttp's
        """Return a connection, new or kept from a request that may have been allowed more. Raises PrivateAddress."""
        connection = await super().connect(req, traces, timeout)
        peer = connection.transport.get_extra_info("peername") if connection.transport is not None else None
        host = (req.proxy or req.url).raw_host or ""
        if peer and not may_connect(_current.get(), host, peer[0]):
            connection.close()
            raise PrivateAddress(host, [peer[0]])
        return connection


_requests: WeakKeyDictionary[Request, Allowance] = WeakKeyDictionary()


def allow(request: Request, allowance: Allowance) -> None:
    """Set the allowance of this request. It is not stored in the request, which a writer of Redis can make, and ends with it."""
    _requests[request] = allowance


def allowance_of(request: Request) -> Allowance:
    """Return the request's allowance; by default public addresses alone."""
    return _requests.get(request, NOTHING)


AGAIN_S = 0.5
LOG_AGAIN_S = 60.0
_NONE_LEFT = frozenset({errno.EMFILE, errno.ENFILE})
_logged_at = float("-inf")


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


_SHOWN = 200  # characters of an answer


class Answer(NamedTuple):
    """The answer to a POST, with the beginning of its text in one line."""

    status: int
    reason: str
    headers: Mapping[str, str]
    text: str


class NoAnswer(Exception):
    """The cause for which a POST has no answer, in words."""


async def _post(url: str, body: bytes, headers: Mapping[str, str], allowance: Allowance, timeout_s: float) -> Answer:
    timeout = aiohttp.ClientTimeout(total=timeout_s)
    try:
        async with aiohttp.ClientSession(connector=GuardedConnector(), timeout=timeout, trust_env=False) as session:
            with allowing(allowance):
                async with session.post(url, data=body, headers=headers, allow_redirects=False) as answer:
                    text = (await answer.content.read(_SHOWN)).decode("utf-8", "replace")
                    return Answer(answer.status, answer.reason or "", answer.headers, " ".join(text.split()))
    except TimeoutError:
        raise NoAnswer(f"no answer within {timeout_s:g} s") from None
    except aiohttp.ClientConnectorError as error:
        raise NoAnswer(f"{error.host}:{error.port} does not answer ({in_words(error.os_error)})") from None
    except (aiohttp.ClientError, OSError) as error:
        raise NoAnswer(f"the receiver broke off: {in_words(error)}") from None


def post(url: str, body: bytes, headers: Mapping[str, str], allowance: Allowance, timeout_s: float) -> Answer:
    """POST a body to an address that the allowance has, or a public one; a redirect is an answer, and no proxy of the environment
    is used. Raises PrivateAddress, NoAnswer.
    """
    return asyncio.run(_post(url, body, headers, allowance, timeout_s))
