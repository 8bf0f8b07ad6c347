"""Faults of served pages: their choice, and their form on the wire.

The choice is a pseudo-random sequence of the seed: the n-th page since the start has the same fault in each run with the same
settings. Numbers are drawn only while some share is above 0, so that a quiet phase does not shift the sequence.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from contextlib import suppress
from enum import Enum
from random import Random

from aiohttp import web

from .behaviour import Behaviour

SLOW_BODY_S = 1.0
_DRIBBLES = 10
_LINGER_ZERO = struct.pack("ii", 1, 0)  # closing such a socket sends RST instead of FIN


class Fault(Enum):
    """Fault of one page."""

    NOT = "served as it should be"
    ERROR = "500 Internal Server Error"
    THROTTLED = "429 Too Many Requests with Retry-After"
    RESET = "half of the body, then a TCP reset"
    SLOW = "a body that takes a second to arrive"


class FaultChoice:
    """Draws the fault of the next page."""

    def __init__(self, seed: int) -> None:
        self._rng = Random(f"forum mischief {seed}")

    def next(self, behaviour: Behaviour) -> Fault:
        """Return the fault of the next page; consumes one number of the sequence, or none if all shares are 0."""
        if not behaviour.misbehaving_share:
            return Fault.NOT
        draw = self._rng.random()
        for share, fault in (
            (behaviour.error_rate, Fault.ERROR),
            (behaviour.throttle_rate, Fault.THROTTLED),
            (behaviour.reset_rate, Fault.RESET),
            (behaviour.slow_body_rate, Fault.SLOW),
        ):
            if draw < share:
                return fault
            draw -= share
        return Fault.NOT


async def send_half_and_reset(request: web.Request, response: web.Response) -> web.StreamResponse:
    """Promise the whole body, send half of it, and reset the connection."""
    started, body = _promised(response)
    with suppress(ConnectionError):  # the client may have closed the connection
        await started.prepare(request)
        await started.write(body[: len(body) // 2])
        if transport := request.transport:
            transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_ZERO)
            transport.abort()
    return started


async def send_slowly(request: web.Request, response: web.Response) -> web.StreamResponse:
    """Send the body in ten pieces over `SLOW_BODY_S`; the length is announced at once."""
    started, body = _promised(response)
    piece = -(-len(body) // _DRIBBLES) or 1
    with suppress(ConnectionError):
        await started.prepare(request)
        for offset in range(0, len(body), piece):
            await asyncio.sleep(SLOW_BODY_S / _DRIBBLES)
            await started.write(body[offset : offset + piece])
    return started


def _promised(response: web.Response) -> tuple[web.StreamResponse, bytes]:
    """Return a response with the same head, to be sent by hand, and the announced body."""
    body = response.body
    assert isinstance(body, bytes)
    started = web.StreamResponse(status=response.status, headers=response.headers)
    started.content_length = len(body)
    return started, body
