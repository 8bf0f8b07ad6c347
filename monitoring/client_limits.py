"""Limits of clients: idle and slow connections do not keep others from an answer, and pages of others are refused.

uvicorn waits for a request without end, and each connection takes a descriptor of the process: 1,000 silent ones, and `/livez`
is answered no more.

    in a request   until it is there as a whole, with its body: REQUEST_S
    at work        until it is answered: WORK_S
    answered       until the client has read it, or asks again: READ_S (a connection that is idle ends sooner, by uvicorn)

Refused are requests whose Host header does not name this exporter (DNS rebinding: a foreign page whose name was pointed to
127.0.0.1 could read the fleet's status), and pictures, scripts or frames of a foreign page that name it: they read nothing, but
each could be a search of the whole database. A link from elsewhere is answered."""

from __future__ import annotations

import asyncio
import re
import resource
from collections.abc import Awaitable, Callable, Iterable
from enum import Enum, auto
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from workers.environment.variables import Exporter

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


LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})

App = Callable[[Any, Any, Any], Awaitable[None]]


def allowed_hosts() -> frozenset[str]:
    """Return loopback, and the hosts in TRAWL_EXPORTER_HOSTS: `exporter,status.example.com`, without ports. Raises
    ConfigError.
    """
    return LOOPBACK | Exporter.read().exporter_hosts


def host_of(header: str) -> str:
    """Return the name in a Host header, without its port."""
    found = re.fullmatch(r"(\[[0-9A-Fa-f:.]+\]|[^:\[\]/@\s]+)(?::\d{1,5})?", header)
    return found[1].lower() if found else ""


class HostCheck:
    """ASGI middleware: 421 for a request whose Host is neither allowed nor the very address that it came in at, 403 for what a
    foreign page loads.
    """

    def __init__(self, app: App, *, allowed: Iterable[str]) -> None:
        self._app = app
        self._allowed = frozenset(allowed)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass it on, or refuse it."""
        if scope["type"] == "http" and not self._fits(scope):
            await _refuse(send, 421, b"this Host is not allowed: name it in TRAWL_EXPORTER_HOSTS\n")
            return
        if scope["type"] == "http" and _is_loaded_by_a_foreign_page(scope):
            await _refuse(send, 403, b"a page of another site asks for this\n")
            return
        await self._app(scope, receive, send)

    def _fits(self, scope: Any) -> bool:
        hosts = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
        if len(hosts) != 1:
            return False
        host = host_of(hosts[0])
        # A client with the address itself is accepted: only a name can be pointed to another machine.
        address = (scope.get("server") or ("",))[0].lower()
        return bool(host) and (host in self._allowed or host in (address, f"[{address}]"))


def _is_loaded_by_a_foreign_page(scope: Any) -> bool:
    """Return True by the headers that browsers send since 2020 (https://www.w3.org/TR/fetch-metadata); others do not
    send them.
    """
    headers = {name: value for name, value in scope["headers"] if name.startswith(b"sec-fetch-")}
    is_link = headers.get(b"sec-fetch-mode") == b"navigate" and headers.get(b"sec-fetch-dest") == b"document"
    return headers.get(b"sec-fetch-site") in (b"cross-site", b"same-site") and not is_link


async def _refuse(send: Any, status: int, body: bytes) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
