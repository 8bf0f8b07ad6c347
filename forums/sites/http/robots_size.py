"""How much of a robots.txt is read."""

from __future__ import annotations

MOST_BYTES = 512 * 1024
"""RFC 9309, 2.5, asks for at least 500 KiB; 8 MB of rules took 10 s of the reactor's time. What follows is not obeyed."""


def readable(body: bytes) -> bytes:
    """The lines of a robots.txt that are read."""
    return body if len(body) <= MOST_BYTES else body[:MOST_BYTES].rpartition(b"\n")[0]
