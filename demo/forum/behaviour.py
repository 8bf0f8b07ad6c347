"""Behaviour of the forum, as `POST /control` sets it: one record."""

from __future__ import annotations

import json
import socket
import struct
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from random import Random

from aiohttp import web

from .world import Mix


@dataclass(frozen=True, kw_only=True)
class Behaviour:
    """`rate` in events per second; `edit_rate`, `delete_rate`, `move_rate` are shares of them (0 to 1), the others publish.

    `latency_ms` before each page; `error_rate` to `reset_rate` are shares of pages (0 to 1). `skew`: exponent of the power
    law of the rates over the forums. `wall`: a soft block with status 200 instead of a page ("login", "captcha", "empty"; ""
    for none), for all forums and kinds of pages or for `wall_forum` and `wall_page` alone.
    """

    rate: float = 0.0
    latency_ms: float = 0.0
    error_rate: float = 0.0
    throttle_rate: float = 0.0
    reset_rate: float = 0.0
    edit_rate: float = 0.0
    delete_rate: float = 0.0
    move_rate: float = 0.0
    skew: float = 0.0
    wall: str = ""
    wall_forum: str = ""
    wall_page: str = ""

    @property
    def mix(self) -> Mix:
        """Shares of the events."""
        return Mix(edit=self.edit_rate, delete=self.delete_rate, move=self.move_rate, skew=self.skew)


_EMPTY_JSON = {
    "index": {"forums": []},
    "list": {"page": 1, "pages": 1, "threads": []},
    "thread": {},
    "comments": {"page": 1, "pages": 1, "comments": []},
}


def is_blocked(behaviour: Behaviour, page: str, forum: str | None) -> bool:
    """Return True if a page of this kind (`index`, `list`, `thread`, `comments`) and of this forum is blocked."""
    if not behaviour.wall or behaviour.wall_page not in ("", page):
        return False
    return behaviour.wall_forum in ("", forum)


@cache
def _wall(name: str) -> bytes:
    return (Path(__file__).parent / "templates" / f"wall_{name}.html").read_bytes()


def block_page(behaviour: Behaviour, page: str, *, as_json: bool) -> tuple[bytes, bool]:
    """Return the blocking body, and True if it is JSON: a login form and a captcha are always HTML."""
    if behaviour.wall == "empty" and as_json:
        return json.dumps(_EMPTY_JSON[page]).encode(), True
    return _wall(behaviour.wall), False


_LINGER_ZERO = struct.pack("ii", 1, 0)  # closing such a socket sends RST instead of FIN


class Fault(Enum):
    """Fault of one page."""

    NOT = "served as it should be"
    ERROR = "500 Internal Server Error"
    THROTTLED = "429 Too Many Requests with Retry-After"
    RESET = "half of the body, then a TCP reset"


class FaultChoice:
    """Draws the fault of the next page."""

    def __init__(self, seed: int) -> None:
        self._rng = Random(f"forum mischief {seed}")

    def next(self, behaviour: Behaviour) -> Fault:
        """Return the fault of the next page; consumes one number of the sequence, or none if all shares are 0."""
        if not (behaviour.error_rate or behaviour.throttle_rate or behaviour.reset_rate):
            return Fault.NOT
        draw = self._rng.random()
        for share, fault in (
            (behaviour.error_rate, Fault.ERROR),
            (behaviour.throttle_rate, Fault.THROTTLED),
            (behaviour.reset_rate, Fault.RESET),
        ):
            if draw < share:
                return fault
            draw -= share
        return Fault.NOT


async def send_half_and_reset(request: web.Request, response: web.Response) -> web.StreamResponse:
    """Promise the whole body, send half of it, and reset the connection."""
    body = response.body
    assert isinstance(body, bytes)
    started = web.StreamResponse(status=response.status, headers=response.headers)
    started.content_length = len(body)
    with suppress(ConnectionError):  # the client may have closed the connection
        await started.prepare(request)
        await started.write(body[: len(body) // 2])
        if transport := request.transport:
            transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_ZERO)
            transport.abort()
    return started
