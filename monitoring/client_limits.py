"""Bounds on connections: idle and slow clients do not keep others from an answer.

uvicorn waits for a request without end, and each connection takes a descriptor of the process: 1,000 silent ones, and `/livez`
is answered no more.

    in a request   until it is there as a whole, with its body: REQUEST_S
    at work        until it is answered: WORK_S
    answered       until the client has read it, or asks again: READ_S (a connection that is idle ends sooner, by uvicorn)
"""

from __future__ import annotations

import asyncio
import resource
from enum import Enum, auto
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

REQUEST_S, WORK_S, READ_S = 20.0, 180.0, 60.0
MOST = 400
"""Connections; of more, the one that waited longest ends, those at work last. With a low `ulimit -n` half of that."""


class Phase(Enum):
    """State of a connection."""

    IN_A_REQUEST = auto()
    ANSWERED = auto()
    AT_WORK = auto()


_SECONDS = {Phase.IN_A_REQUEST: lambda: REQUEST_S, Phase.AT_WORK: lambda: WORK_S, Phase.ANSWERED: lambda: READ_S}


class BoundedConnection(H11Protocol):
    """One connection."""

    connections: set[Any]
    _phase = Phase.IN_A_REQUEST
    _since = 0.0
    _end: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start, and end an older connection where there are too many."""
        super().connection_made(transport)
        self._enter(Phase.IN_A_REQUEST)
        if len(self.connections) > most_connections():
            others = self.connections - {self}
            min(others, key=lambda one: (one._phase is Phase.AT_WORK, one._since)).transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Release the connection's timer and place."""
        super().connection_lost(exc)
        if self._end is not None:
            self._end.cancel()

    def data_received(self, data: bytes) -> None:
        """Receive a part of a request, or the whole."""
        if self._phase is Phase.ANSWERED:
            self._enter(Phase.IN_A_REQUEST)
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        """Begin the time to read: the response is in the transport, which sends it as fast as the client reads."""
        self._enter(Phase.ANSWERED)
        super().on_response_complete()  # goes on with a request that came meanwhile
        self._look()

    def _look(self) -> None:
        cycle = self.cycle
        if self._phase is not Phase.AT_WORK and cycle is not None and not (cycle.response_complete or cycle.more_body):
            self._enter(Phase.AT_WORK)

    def _enter(self, phase: Phase) -> None:
        if self._end is not None:
            self._end.cancel()
        self._phase, self._since = phase, self.loop.time()
        self._end = self.loop.call_later(_SECONDS[phase](), self.transport.abort)


def most_connections() -> int:
    """Return the most connections that are held at a time."""
    return min(MOST, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2)
