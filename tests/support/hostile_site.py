"""A phpBB board on loopback whose threads are what a test says, in a thread of the test."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

DATES = "2026-11-22T10:00:00+00:00"


@contextmanager
def hostile_site(thread: bytes, *, threads: int) -> Iterator[tuple[str, list[str]]]:
    """Its URL, and the paths that were asked for, while it runs. Each of its threads is the same page."""
    asked: list[str] = []
    rows = "".join(
        f'<li class="row"><dl><dt><a class="topictitle" href="/viewtopic.php?t={n}">thread {n}</a></dt>'
        f'<dd class="posts">3</dd><dd class="lastpost"><time datetime="{DATES}">x</time></dd></dl></li>'
        for n in range(1, threads + 1)
    )
    listed = f'<html><body class="section-viewforum"><ul class="topiclist topics">{rows}</ul></body></html>'.encode()

    class Board(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            body = listed if self.path.startswith("/viewforum") else thread
            self.send_response(404 if self.path == "/robots.txt" else 200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Board) as server:
        serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, name="hostile site")
        serving.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", asked
        finally:
            server.shutdown()
            serving.join()


def declare_hostile(folder: Path, name: str, url: str, more: str = "") -> None:
    """Its site file."""
    text = f'profile = "phpbb"\nbase_url = "{url}"\nforums = ["2"]\n[politeness]\nrate = 0\n{more}'
    (folder / f"{name}.toml").write_text(text, "utf-8")
