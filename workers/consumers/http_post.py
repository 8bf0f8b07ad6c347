"""Items to an HTTP address: each batch is one POST of JSON Lines, and counts as taken when the answer is 2xx."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from urllib.parse import unquote, urlsplit, urlunsplit

from redis_components.errors import ConfigError
from redis_components.server.url import masked
from workers.http.connector import NoAnswer, PrivateAddress, post
from workers.http.public_addresses import Allowance, private_addresses_allowed

from .consume import Item, Sink, SinkUnavailable, by_halves, to_line

TIMEOUT_S = 15.0
"""Shorter than the consumer's lock lives."""
_LATER = frozenset({408, 425, 429})
_TOO_LARGE = 413


class HttpPost(Sink):
    """Sends batches to `url`; a login in it becomes a header.

    `named`: the operator of this machine has written the URL, and so it may name a private address. A URL from Redis reaches
    public addresses only.
    """

    def __init__(self, url: str, *, named: bool = True) -> None:
        parts = urlsplit(url)
        self._host = (parts.hostname or "").lower()
        hosts = frozenset({self._host}) if named else frozenset()
        self._allowance = Allowance(everything=private_addresses_allowed(), hosts=hosts)
        self._shown = masked(url)
        self._headers = {"Content-Type": "application/x-ndjson", "User-Agent": "trawl-consume"}
        if parts.username is not None:
            login = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
            self._headers["Authorization"] = f"Basic {base64.b64encode(login).decode()}"
        self._url = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))

    def write(self, items: Sequence[Item]) -> dict[int, str]:
        """Send them; where that is too much for one request, by halves."""
        return {one.place: reason for one, reason in by_halves(self._send, items)}

    def _send(self, items: Sequence[Item]) -> str | None:
        """Send them in one request; return why that is too large for the server."""
        body = b"".join(to_line(one.value) for one in items)
        try:
            answer = post(self._url, body, self._headers, self._allowance, TIMEOUT_S)
        except PrivateAddress as error:
            raise ConfigError(
                f"{self._host} is, or resolves to, {error.addresses}, not a public address: nothing was sent; if that is meant,"
                " name the address itself with --to or in trawl.toml, or set TRAWL_ALLOW_PRIVATE=1"
            ) from None
        except NoAnswer as error:
            raise SinkUnavailable(f"{self._shown} cannot be reached: {error}") from None
        if 200 <= answer.status < 300:
            return None
        if answer.status == _TOO_LARGE:
            return f"{self._shown} answers {_TOO_LARGE}: it is too large"
        if answer.status >= 500 or answer.status in _LATER:
            raise SinkUnavailable(f"{self._shown} answers {answer.status}")
        raise ConfigError(f"{self._shown} answers {answer.status} {answer.reason}: no item was taken; correct the address")
