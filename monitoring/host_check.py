"""Refuses requests whose Host header does not name this exporter (DNS rebinding): otherwise a foreign page whose name was pointed
to 127.0.0.1 could read the fleet's status through a visitor's browser.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from workers.environment.variables import Exporter

LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})

App = Callable[[Any, Any, Any], Awaitable[None]]


def allowed_hosts() -> frozenset[str]:
    """Loopback, and what TRAWL_EXPORTER_HOSTS names: `exporter,status.example.com`, without ports. Raises ConfigError."""
    return LOOPBACK | Exporter.read().exporter_hosts


def host_of(header: str) -> str:
    """The name in a Host header, without its port."""
    found = re.fullmatch(r"(\[[0-9A-Fa-f:.]+\]|[^:\[\]/@\s]+)(?::\d{1,5})?", header)
    return found[1].lower() if found else ""


class HostCheck:
    """ASGI middleware: 421 for a request whose Host is neither allowed nor the very address that it came in at."""

    def __init__(self, app: App, *, allowed: Iterable[str]) -> None:
        self._app = app
        self._allowed = frozenset(allowed)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass it on, or refuse it."""
        if scope["type"] == "http" and not self._fits(scope):
            await _refuse(send)
            return
        await self._app(scope, receive, send)

    def _fits(self, scope: Any) -> bool:
        hosts = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
        if len(hosts) != 1:
            return False
        host = host_of(hosts[0])
        # Who wrote the address itself has asked for it: only a name can be pointed to somebody else.
        address = (scope.get("server") or ("",))[0].lower()
        return bool(host) and (host in self._allowed or host in (address, f"[{address}]"))


async def _refuse(send: Any) -> None:
    body = b"this Host is not allowed: name it in TRAWL_EXPORTER_HOSTS\n"
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 421, "headers": headers})
    await send({"type": "http.response.body", "body": body})
