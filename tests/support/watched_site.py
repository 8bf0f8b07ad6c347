"""An HTTP server whose log is evidence: it answers by path, and notes each request with all that came with it."""

from __future__ import annotations

import io
import json
import socket
import struct
import sys
import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

SO_TIMESTAMPNS = 35
"""Linux says with what it gives when that came, so that a site whose thread waits for a processor does not note it late."""


class TimedReader(io.RawIOBase):
    """The bytes of a connection, and when the last of them came (s of `time.monotonic`)."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self.came_at = 0.0
        connection.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        data, told, _, _ = self._connection.recvmsg(len(buffer), 64)
        self.came_at = time.monotonic()
        for _, kind, value in told:
            if kind == SO_TIMESTAMPNS:
                seconds, nanoseconds = struct.unpack("qq", value)
                self.came_at -= max(0.0, time.time() - seconds - nanoseconds / 1e9)
        buffer[: len(data)] = data
        return len(data)


@dataclass
class Page:
    """What is answered at a path."""

    body: Any = ""  # text, bytes, or what becomes JSON
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


class WatchedSite:
    """A site on a free port of 127.0.0.1, until the `with` block ends."""

    def __init__(self) -> None:
        self.pages: dict[str, Page] = {}
        self.asked: list[tuple[str, dict[str, str]]] = []
        """Path (of a proxy request the whole URL) and headers, their names in lower case, of each request."""
        self.answer: Callable[[str], Page] = lambda path: self.pages.get(path, Page("nothing", 404))
        """What is answered at a path; called in the thread of the request."""
        self.latency_s = 0.0
        """What each answer takes."""
        self.times: list[float] = []
        """When each request came (s of a clock that never goes back)."""
        self.answered: list[tuple[float, int]] = []
        """When each answer was sent, and its status."""
        self.most_open = 0
        """Most requests that were answered at one time."""
        self._open = 0
        self._lock = threading.Lock()
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self) -> None:
                super().setup()
                self._reader = TimedReader(self.connection)
                self.rfile = io.BufferedReader(self._reader)

            def do_GET(self) -> None:
                with site._begins(self._reader.came_at):
                    self._answer()

            def _answer(self) -> None:
                site.asked.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
                page = site.answer(self.path)
                time.sleep(site.latency_s)
                is_text = isinstance(page.body, str | bytes)
                text = page.body if is_text else json.dumps(page.body)
                body = text if isinstance(text, bytes) else text.encode()
                self.send_response(page.status)
                given = {"Content-Type": "text/html" if is_text else "application/json", "Content-Length": str(len(body))}
                for name, value in (given | page.headers).items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)
                site.answered.append((time.monotonic(), page.status))

            def log_message(self, *_: object) -> None: ...

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128  # with fewer places a connection is tried again a second later

            def handle_error(self, *_: object) -> None:
                if not isinstance(sys.exception(), ConnectionError):  # crawlers are killed
                    super().handle_error(*_)

        self._server = Server(("127.0.0.1", 0), Handler)
        self.port: int = self._server.server_port
        self.url = f"http://127.0.0.1:{self.port}"

    @contextmanager
    def _begins(self, came_at: float) -> Iterator[None]:
        with self._lock:
            self.times.append(came_at)
            self._open += 1
            self.most_open = max(self.most_open, self._open)
        try:
            yield
        finally:
            with self._lock:
                self._open -= 1

    def most_within(self, seconds: float) -> int:
        """The most requests in any window of that length."""
        times = sorted(self.times)
        return max((bisect_left(times, at + seconds) - place for place, at in enumerate(times)), default=0)

    def redirect(self, path: str, to: str, status: int = 302, **headers: str) -> None:
        """Send whoever asks for `path` to the URL `to`."""
        self.pages[path] = Page("moved", status, {"Location": to, **headers})

    def paths(self) -> list[str]:
        """What was asked for, in order."""
        return [path for path, _ in self.asked]

    def said(self) -> str:
        """The whole log as text, to look for a secret in."""
        return json.dumps(self.asked)

    def headers_at(self, path: str) -> dict[str, str]:
        """The headers of the last request for `path`."""
        return next(headers for asked, headers in reversed(self.asked) if asked == path)

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()
