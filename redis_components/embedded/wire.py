"""The two commands that the keeper sends to its server, without the client library: a keeper should stay small and start fast."""

from __future__ import annotations

import contextlib
import socket
from enum import Enum
from urllib.parse import unquote, urlsplit


class Answer(Enum):
    """The kinds of answer on a port."""

    READY = "ready"  # our server: it knows the password and answers
    LOADING = "loading"  # our server, still reading its data
    FOREIGN = "foreign"  # something listens there that does not know the password
    SILENT = "silent"  # nothing listens, or it does not answer in time


def ping(url: str, *, timeout_s: float = 1.0) -> Answer:
    """Return the kind of server at this `redis://:password@host:port`."""
    try:
        auth, pong = _ask(url, timeout_s, "PING")
    except OSError:
        return Answer.SILENT
    if auth != b"+OK":
        return Answer.FOREIGN
    return {b"+PONG": Answer.READY, b"-LOADIN": Answer.LOADING}.get(pong[:7], Answer.FOREIGN)


def shutdown(url: str, *, timeout_s: float = 1.0) -> None:
    """Ask the server to stop, if it is ours; a foreign one refuses the password and goes on."""
    with contextlib.suppress(OSError):
        _ask(url, timeout_s, "SHUTDOWN")


def _ask(url: str, timeout_s: float, command: str) -> tuple[bytes, bytes]:
    """Log in, send the command, and return the first line of both replies; b"" where the connection ended."""
    parts = urlsplit(url)
    password = unquote(parts.password or "").encode()
    with socket.create_connection((parts.hostname, parts.port), timeout_s) as sock, sock.makefile("rb") as replies:
        sock.sendall(b"*2\r\n$4\r\nAUTH\r\n$%d\r\n%b\r\n%b\r\n" % (len(password), password, command.encode()))
        return replies.readline(1024).rstrip(), replies.readline(1024).rstrip()
