"""The error for an address that is not public. Apart from other modules, as it loads Scrapy, which reading a site
file does not.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.http_exceptions import HttpProcessingError
from scrapy.exceptions import CannotResolveHostError

from redis_components.server.printable import in_words

from .public_addresses import NOTHING, Allowance

if TYPE_CHECKING:
    from aiohttp import ClientRequest, ClientTimeout
    from aiohttp.abc import ResolveResult
    from aiohttp.connector import Connection
    from aiohttp.tracing import Trace


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
        usable = [one for one in found if allowance.allows(host, one["host"])]
        if found and not usable:
            raise PrivateAddress(host, [one["host"] for one in found])
        return usable

    async def connect(self, req: ClientRequest, traces: list[Trace], timeout: ClientTimeout) -> Connection:  # noqa: ASYNC109 - aiohttp's
        """Return a connection, new or kept from a request that may have been allowed more. Raises PrivateAddress."""
        connection = await super().connect(req, traces, timeout)
        peer = connection.transport.get_extra_info("peername") if connection.transport is not None else None
        host = (req.proxy or req.url).raw_host or ""
        if peer and not _current.get().allows(host, peer[0]):
            connection.close()
            raise PrivateAddress(host, [peer[0]])
        return connection


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
