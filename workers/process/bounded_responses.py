"""Bounds what a server may send before its response: aiohttp reads responses of 1xx without end, while nothing else runs."""

from __future__ import annotations

from functools import partial
from http import HTTPStatus
from typing import Any

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.http_exceptions import HttpProcessingError

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
