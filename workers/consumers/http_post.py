"""Items to an HTTP address: each batch is one POST of JSON Lines, and counts as taken when the answer is 2xx."""

from __future__ import annotations

import base64
import http.client
import socket
import urllib.error
import urllib.request
from collections.abc import Sequence
from functools import partial
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

from redis_components.errors import ConfigError
from redis_components.server.url import masked
from workers.http.public_addresses import Allowance, private_addresses_allowed

from .consume import Item, Sink, SinkUnavailable, by_halves, to_line

TIMEOUT_S = 15.0
"""Shorter than the consumer's lock lives."""
_LATER = frozenset({408, 425, 429})
_TOO_LARGE = 413


_CONNECTIONS: dict[str, type[http.client.HTTPConnection]] = {
    "http": http.client.HTTPConnection,
    "https": http.client.HTTPSConnection,
}


def connect_allowed(
    allowance: Allowance, address: tuple[str, int], timeout: float | None, source: tuple[str, int] | None = None
) -> socket.socket:
    """Connect to an address that may be used; the checked address is the one connected to. Raises ConfigError, OSError."""
    host, port = address
    found = list(dict.fromkeys(str(one[4][0]) for one in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)))
    usable = [one for one in found if allowance.allows(host, one)]
    if not usable:
        raise ConfigError(
            f"{host} is, or resolves to, {', '.join(found)}, not a public address: nothing was sent; if that is meant, name the"
            " address itself with --to or in trawl.toml, or set TRAWL_ALLOW_PRIVATE=1"
        )
    error: OSError | None = None
    for one in usable:
        try:
            return socket.create_connection((one, port), timeout, source)
        except OSError as failed:
            error = failed
    raise error or OSError("no address")


class _Guarded(urllib.request.HTTPHandler, urllib.request.HTTPSHandler):
    """Connects to public addresses, and to what the allowance has."""

    def __init__(self, allowance: Allowance) -> None:
        super().__init__()
        self._connect = partial(connect_allowed, allowance)

    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(partial(self._made, "http"), req)

    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(partial(self._made, "https"), req)

    def _made(self, scheme: str, host: str, **named: Any) -> http.client.HTTPConnection:
        connection = _CONNECTIONS[scheme](host, **named)
        connection._create_connection = self._connect  # type: ignore[attr-defined]  # of both; TLS still checks the host's name
        return connection


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A POST that is redirected would arrive as a GET, without its items."""

    def redirect_request(self, *_of_urllib: Any, **_named: Any) -> None:
        return None


class HttpPost(Sink):
    """Sends batches to `url`; a login in it becomes a header.

    `named`: the operator of this machine has written the URL, and so it may name a private address. A URL from Redis reaches
    public addresses only.
    """

    def __init__(self, url: str, *, named: bool = True) -> None:
        parts = urlsplit(url)
        hosts = frozenset({(parts.hostname or "").lower()}) if named else frozenset()
        allowance = Allowance(everything=private_addresses_allowed(), hosts=hosts)
        self._shown = masked(url)
        self._headers = {"Content-Type": "application/x-ndjson", "User-Agent": "trawl-consume"}
        if parts.username is not None:
            login = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
            self._headers["Authorization"] = f"Basic {base64.b64encode(login).decode()}"
        self._url = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
        self._opener = urllib.request.build_opener(_NoRedirect(), _Guarded(allowance))

    def write(self, items: Sequence[Item]) -> dict[int, str]:
        """Send them; where that is too much for one request, by halves."""
        return {one.place: reason for one, reason in by_halves(self._send, items)}

    def _send(self, items: Sequence[Item]) -> str | None:
        """Send them in one request; return why that is too large for the server."""
        body = b"".join(to_line(one.value) for one in items)
        request = urllib.request.Request(self._url, body, self._headers, method="POST")  # noqa: S310 - http or https: `parse_target`
        try:
            with self._opener.open(request, timeout=TIMEOUT_S) as answer:
                answer.read(1)
        except urllib.error.HTTPError as error:
            error.close()
            if error.code == _TOO_LARGE:
                return f"{self._shown} answers {_TOO_LARGE}: it is too large"
            if error.code >= 500 or error.code in _LATER:
                raise SinkUnavailable(f"{self._shown} answers {error.code}") from None
            raise ConfigError(
                f"{self._shown} answers {error.code} {error.reason}: no item was taken; correct the address"
            ) from None
        except (OSError, http.client.HTTPException) as error:
            raise SinkUnavailable(f"{self._shown} cannot be reached: {getattr(error, 'reason', None) or error!r}") from None
        return None
