"""TCP ports of this machine for the services that people look at."""

from __future__ import annotations

import socket

from redis_components.embedded.files import free_port, is_free
from redis_components.errors import TrawlError


class PortInUse(TrawlError):
    """Another program listens on this port; free it, or choose another."""


def take(port: int, *, of: str, option: str) -> int:
    """`port` if nothing listens there; any free one for 0. Raises PortInUse, which names the option to choose another with."""
    if port == 0:
        return free_port()
    if not is_free(port):
        raise PortInUse(f"port {port} for {of} is in use by another program: end that, or choose another with {option} (0: any)")
    return port


def prefer(port: int) -> int:
    """`port` if nothing listens there, else any free one."""
    return port if is_free(port) else free_port()


def answers(port: int) -> bool:
    """Return True if a server of this machine accepts connections at this port."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
    except OSError:
        return False
