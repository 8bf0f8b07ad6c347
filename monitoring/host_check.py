"""Refuses what pages of others make a visitor's browser send.

Requests whose Host header does not name this exporter (DNS rebinding: a foreign page whose name was pointed to 127.0.0.1 could
read the fleet's status), and pictures, scripts or frames of a foreign page that name it: they read nothing, but each could be a
search of the whole database. A link from elsewhere is answered.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from workers.environment.variables import Exporter

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
