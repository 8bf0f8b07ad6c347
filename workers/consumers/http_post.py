"""Items to an HTTP address: each batch is one POST of JSON Lines, and counts as taken when the answer is 2xx."""

from __future__ import annotations

import base64
import http.client
import urllib.error
import urllib.request
from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

from redis_components.errors import ConfigError
from redis_components.server.url import masked

from .sink import Item, SinkUnavailable, to_line

TIMEOUT_S = 15.0
"""Shorter than the consumer's lock lives."""
_LATER = frozenset({408, 425, 429})


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A POST that is redirected would arrive as a GET, without its items."""

    def redirect_request(self, *_of_urllib: Any, **_named: Any) -> None:
        return None


class HttpPost:
    """Sends batches to `url`; a login in it becomes a header."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._shown = masked(url)
        self._headers = {"Content-Type": "application/x-ndjson", "User-Agent": "trawl-consume"}
        if parts.username is not None:
            login = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
            self._headers["Authorization"] = f"Basic {base64.b64encode(login).decode()}"
        self._url = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
        self._opener = urllib.request.build_opener(_NoRedirect())

    def write(self, items: Sequence[Item]) -> dict[int, str]:
        """Send them."""
        body = b"".join(to_line(one.value) for one in items)
        request = urllib.request.Request(self._url, body, self._headers, method="POST")  # noqa: S310 - http or https: `parse_target`
        try:
            with self._opener.open(request, timeout=TIMEOUT_S) as answer:
                answer.read(1)
        except urllib.error.HTTPError as error:
            error.close()
            if error.code >= 500 or error.code in _LATER:
                raise SinkUnavailable(f"{self._shown} answers {error.code}") from None
            raise ConfigError(
                f"{self._shown} answers {error.code} {error.reason}: no item was taken; correct the address"
            ) from None
        except (OSError, http.client.HTTPException) as error:
            raise SinkUnavailable(f"{self._shown} cannot be reached: {getattr(error, 'reason', None) or error!r}") from None
        return {}

    def tick(self) -> None:
        """Nothing to do."""

    def close(self) -> None:
        """Nothing to do."""
