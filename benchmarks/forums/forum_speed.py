"""Speed of the demo forum's server: `python benchmarks/forums/forum_speed.py [--pages N] [--connections N] [--json]`.

This process sends requests over open connections, the server is another process; both have one thread. The wall-clock rate is
that of two processes on this machine at this moment; the server's CPU time per page gives the rate of one core, independent of
other load.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import Iterator
from itertools import cycle
from typing import Any
from urllib.parse import urlsplit

import psutil

from demo.forum.process import ForumProcess

_REQUEST = (
    "GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: Scrapy/2.19 (+https://scrapy.org)\r\n"
    "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n"
    "Accept-Language: en\r\nAccept-Encoding: gzip, deflate\r\n\r\n"
)
_ROUND_S = 60.0


class KeptConnection(asyncio.Protocol):
    """Asks for the next of `requests` as soon as the answer to the last is complete."""

    def __init__(self, requests: Iterator[bytes], finished: asyncio.Future[None]) -> None:
        self._requests = requests
        self._finished = finished
        self._answer = b""
        self._length: int | None = None
        self._transport: asyncio.WriteTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        self._transport = transport
        self._ask()

    def data_received(self, data: bytes) -> None:
        self._answer += data
        if self._length is None and (end := self._answer.find(b"\r\n\r\n")) >= 0:
            assert self._answer.startswith(b"HTTP/1.1 200"), self._answer[:80]
            head = self._answer[:end].lower()
            start = head.index(b"content-length:") + len(b"content-length:")
            self._length = end + 4 + int(head[start:].split(b"\r\n", 1)[0])
        if self._length is not None and len(self._answer) >= self._length:
            self._ask()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._finished.done():
            self._finished.set_exception(exc or ConnectionError("the forum closed a kept connection"))

    def _ask(self) -> None:
        assert self._transport is not None
        self._answer, self._length = b"", None
        request = next(self._requests, None)
        if request is None:
            self._finished.set_result(None)
            self._transport.close()
        else:
            self._transport.write(request)


async def _load(netloc: str, paths: Iterator[str], connections: int) -> int:
    """Ask for all of `paths`; returns how many there were."""
    asked = 0

    def requests() -> Iterator[bytes]:
        nonlocal asked
        for path in paths:
            asked += 1
            yield _REQUEST.format(path=path, host=netloc).encode()

    host, port = netloc.rsplit(":", 1)
    loop, shared = asyncio.get_running_loop(), requests()
    finished = [loop.create_future() for _ in range(connections)]
    for future in finished:
        await loop.create_connection(lambda f=future: KeptConnection(shared, f), host, int(port))  # type: ignore[misc]
    await asyncio.wait_for(asyncio.gather(*finished), _ROUND_S)
    return asked


def measure(forum: ForumProcess, name: str, paths: Iterator[str], connections: int) -> dict[str, Any]:
    """One round: pages per second by the wall clock, and the server's CPU time per page in µs."""
    server = psutil.Process(forum.pid)
    cpu, wall = sum(server.cpu_times()[:2]), time.perf_counter()
    pages = asyncio.run(_load(urlsplit(forum.url).netloc, paths, connections))
    wall, cpu = time.perf_counter() - wall, sum(server.cpu_times()[:2]) - cpu
    # CPU times come in ticks of 10 ms: a round of a few thousand pages is known to about a percent.
    return {"round": name, "pages": pages, "pages_per_s": round(pages / wall), "server_us_per_page": round(cpu / pages * 1e6)}


def _addresses(forums: int, threads: int) -> dict[str, list[str]]:
    pages = -(-threads // 20)
    posts = range(1, forums * threads + 1)
    return {
        "list": [f"/list/f{forum}/{page}" for forum in range(1, forums + 1) for page in range(1, pages + 1)],
        "post": [f"/post/p{post}" for post in posts],
        "comment": [f"/comment/p{post}/1" for post in posts],
        "html list": [f"/html/f/f{forum}?page={page}" for forum in range(1, forums + 1) for page in range(1, pages + 1)],
        "html thread": [f"/html/t/p{post}" for post in posts],
    }


def rounds(pages: int, connections: int) -> Iterator[dict[str, Any]]:
    """Every kind once rendered for the first time and then again; then all together, at rest and living."""
    forums, threads = 5, 400
    with ForumProcess(seed=1, forums=forums, threads=threads) as forum:
        kinds = _addresses(forums, threads)
        for kind, paths in kinds.items():
            yield measure(forum, f"{kind}, first time", iter(paths), connections)
            yield measure(forum, f"{kind}, again", _some(paths, pages), connections)
        mixed = [path for paths in kinds.values() for path in paths]
        for rate in (0, 20, 200):
            forum.control(rate=rate)
            yield measure(forum, f"all kinds, {rate} events/s", _some(mixed, pages), connections)


def _some(paths: list[str], count: int) -> Iterator[str]:
    return (path for path, _ in zip(cycle(paths), range(count), strict=False))


def main() -> None:
    """Run the rounds and print a table, or JSON."""
    parser = argparse.ArgumentParser(description="How fast the demo forum serves.")
    parser.add_argument("--pages", type=int, default=10_000, help="pages per round (default: %(default)s)")
    parser.add_argument("--connections", type=int, default=32, help="kept connections (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="one JSON list instead of a table")
    args = parser.parse_args()
    measured = []
    for row in rounds(args.pages, args.connections):
        measured.append(row)
        if not args.json:
            speed, cost = f"{row['pages_per_s']:>7}/s", f"{row['server_us_per_page']:>5} µs of server CPU each"
            print(f"{row['round']:<26} {row['pages']:>6} pages {speed} {cost}", flush=True)
    if args.json:
        print(json.dumps(measured))


if __name__ == "__main__":
    main()
