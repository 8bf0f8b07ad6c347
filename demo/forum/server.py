"""The forum over HTTP, and its process from start to end: grow the content, listen, report the address, run events, stop.

aiohttp.web carries it. Measured with 3,000-byte bodies over 32 kept connections, one core each for server and client, the bare
libraries served (pages/s, server CPU per page): aiohttp.web with its router 28,000, 34 µs; uvicorn with httptools and a raw
ASGI function 28,000, 36 µs; httptools with a protocol of our own 35,000, 17 µs. The two libraries are equally fast and ten
times above the 2,000 pages/s that are wanted, and only aiohttp lets a handler reach its transport by a public name, which
resetting a connection needs. `benchmarks/forums/forum_speed.py` measures this server."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import json
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

from aiohttp import web

from .behaviour import Behaviour, Fault, FaultChoice, block_page, is_blocked, send_half_and_reset
from .html_pages import HtmlPages, not_found
from .json_pages import JsonPages, encode
from .words import Bodies, NoSuchPage
from .world import Size, World, liveliness

TICK_S = 0.02


async def run_events(rate: Callable[[], float], advance: Callable[[], None]) -> None:
    """Call `advance` `rate()` times per second, until cancelled.

    `rate` is called at each tick, so that a change applies at once and 0 freezes. After a stall (a busy machine, a stopped
    process) at most one second's events are made up for, to avoid a flood.
    """
    loop = asyncio.get_running_loop()
    due, last = 0.0, loop.time()
    while True:
        await asyncio.sleep(TICK_S)
        now = loop.time()
        due += rate() * min(now - last, 1.0)
        last = now
        for _ in range(int(due)):
            advance()
        due -= int(due)


Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
View = Callable[[web.Request], bytes]
_JSON = {"Content-Type": "application/json"}
_HTML = {"Content-Type": "text/html; charset=utf-8"}
_WALLED = {
    "forums": "index",
    "html_index": "index",
    "list": "list",
    "html_forum": "list",
    "post": "thread",
    "comment": "comments",
    "html_thread": "comments",
}
"""Kind of page for soft blocks, by route; other addresses are never blocked."""


class ForumServer:
    """Serves pages of `world`, with the faults of `behaviour`."""

    def __init__(self, world: World, behaviour: Behaviour, seed: int) -> None:
        self.world = world
        self.behaviour = behaviour
        bodies = Bodies()
        self._json = JsonPages(world, bodies)
        self._html = HtmlPages(world, bodies)
        self._fault_choice = FaultChoice(seed)
        self._served: dict[str, Counter[str]] = {}

    def application(self) -> web.Application:
        """Return the application with its routes. Pages may misbehave; the truth, the control and the stats never do."""
        as_json, as_html = self._json, self._html
        app = web.Application(client_max_size=64 * 1024)
        app.add_routes(
            [
                web.get("/list/{id}/{page}", self._page("list", _JSON, lambda r: as_json.threads(_id(r), r.match_info["page"]))),
                web.get("/post/{id}", self._page("post", _JSON, lambda r: as_json.post(_id(r)))),
                web.get(
                    "/comment/{id}/{page}", self._page("comment", _JSON, lambda r: as_json.comments(_id(r), r.match_info["page"]))
                ),
                web.get("/recent/{page}", self._page("recent", _JSON, lambda r: as_json.recent(r.match_info["page"]))),
                web.get("/forums", self._page("forums", _JSON, lambda _: as_json.forums())),
                web.get("/", self._page("html_index", _HTML, lambda _: as_html.index())),
                web.get("/html/f/{id}", self._page("html_forum", _HTML, lambda r: as_html.forum(_id(r), _asked_page(r)))),
                web.get("/html/t/{id}", self._page("html_thread", _HTML, lambda r: as_html.thread(_id(r), _asked_page(r)))),
                web.get("/truth", self._show_truth),
                web.get("/stats", self._show_stats),
                web.get("/control", self._show_control),
                web.post("/control", self._control),
                web.get("/{nothing:.*}", self._page("unknown", _JSON, _no_such_address)),
            ]
        )
        return app

    def _page(self, kind: str, headers: dict[str, str], view: View) -> Handler:
        """Return a handler for one kind of page: it waits, draws a fault, renders the content of *that* moment, sends and
        counts it.

        A soft block counts as status "wall".
        """
        served = self._served.setdefault(kind, Counter())

        async def handle(request: web.Request) -> web.StreamResponse:
            if self.behaviour.latency_ms:
                await asyncio.sleep(self.behaviour.latency_ms / 1000)
            fault = self._fault_choice.next(self.behaviour)
            if blocked := self._block(kind, request, headers):
                served["wall"] += 1
                return blocked
            response = _faulty(fault) or _rendered(view, request, headers)
            if fault is Fault.RESET:
                served["reset"] += 1
                return await send_half_and_reset(request, response)
            served[str(response.status)] += 1
            return response

        return handle

    def _block(self, kind: str, request: web.Request, headers: dict[str, str]) -> web.Response | None:
        """Return the soft block in place of this page, if any."""
        page = _WALLED.get(kind)
        if page is None or not is_blocked(self.behaviour, page, self._forum_of(page, request)):
            return None
        body, as_json = block_page(self.behaviour, page, as_json=headers is _JSON)
        return web.Response(body=body, headers=_JSON if as_json else _HTML)

    def _forum_of(self, page: str, request: web.Request) -> str | None:
        """Return the forum of a page."""
        if page == "list":
            return _id(request)
        thread = self.world.threads.get(request.match_info.get("id", ""))
        return thread.post.forum_id if thread else None

    async def _show_truth(self, _: web.Request) -> web.Response:
        return web.Response(body=self._json.truth(), headers=_JSON)

    async def _show_stats(self, _: web.Request) -> web.Response:
        served = {kind: dict(by_status) for kind, by_status in self._served.items() if by_status}
        total = sum(by_status.total() for by_status in self._served.values())
        world = self.world
        counts = {"posts": len(world.post_hashes), "comments": len(world.comment_hashes), "revision": world.revision}
        return _answer({"served": served, "total": total, "pages": self._json.sizes(), **counts})

    async def _show_control(self, _: web.Request) -> web.Response:
        return _answer(self.behaviour)

    async def _control(self, request: web.Request) -> web.Response:
        try:
            self.behaviour = replace(self.behaviour, **json.loads(await request.read()))
        except (TypeError, ValueError, RecursionError) as wrong:
            return _answer({"error": f"/control: {wrong}"}, status=400)
        return _answer(self.behaviour)


def _id(request: web.Request) -> str:
    return request.match_info["id"]


def _asked_page(request: web.Request) -> str:
    return request.query.get("page", "1")


def _no_such_address(request: web.Request) -> bytes:
    raise NoSuchPage(f"no page at {request.path[:80]!r}; start at / or /forums")


def _rendered(view: View, request: web.Request, headers: dict[str, str]) -> web.Response:
    try:
        return web.Response(body=view(request), headers=headers)
    except NoSuchPage as missing:
        if headers is _HTML:
            return web.Response(body=not_found(str(missing)), status=missing.status, headers=_HTML)
        return _answer({"error": str(missing)}, status=missing.status)


def _faulty(fault: Fault) -> web.Response | None:
    if fault is Fault.ERROR:
        return _answer({"error": "internal error, as configured"}, status=500)
    if fault is Fault.THROTTLED:
        response = _answer({"error": "too many requests, as configured"}, status=429)
        response.headers["Retry-After"] = "1"
        return response
    return None


def _answer(content: object, status: int = 200) -> web.Response:
    return web.Response(body=encode(content), status=status, headers=_JSON)


_GOODBYE_S = 1.0  # time for pages in flight to finish


async def run(world: World, options: argparse.Namespace) -> None:
    """Serve `world` until SIGTERM or SIGINT. Raises OSError where it cannot listen, or not write the ready file."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    forum = ForumServer(world, Behaviour(rate=options.rate), options.seed)
    runner = web.AppRunner(forum.application(), access_log=None, shutdown_timeout=_GOODBYE_S)
    await runner.setup()
    try:
        await web.TCPSite(runner, options.host, options.port).start()
        host, port = runner.addresses[0][:2]
        url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        if options.ready_file:
            _write_ready(options.ready_file, url)
        counts = f"{len(world.forums)} forums, {len(world.threads)} threads, {len(world.comment_hashes)} comments"
        print(f"forum at {url}: {counts} (seed {options.seed})", flush=True)
        life = asyncio.create_task(run_events(lambda: _rate(forum, options.seed), lambda: world.advance(forum.behaviour.mix)))
        stopped = asyncio.create_task(stop.wait())
        # An error in the event loop ends the process instead of leaving a forum that silently stands still.
        await asyncio.wait({life, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if life.done():
            life.result()
        life.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await life
    finally:
        await runner.cleanup()


def _rate(forum: ForumServer, seed: int) -> float:
    """Return the present events per second; with a clock they vary by day, night and bursts."""
    world, rate = forum.world, forum.behaviour.rate
    return rate * liveliness(seed, world.forum_s) if rate and world.pace else rate


def _write_ready(path: Path, url: str) -> None:
    """Write the file atomically, so that a reader never sees a part of it."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    unfinished.write_text(json.dumps({"url": url, "pid": os.getpid()}), "utf-8")
    unfinished.replace(path)


def main(options: argparse.Namespace) -> int:
    """Run the server; return the exit code, 0 after a signal and 1 if it cannot serve."""
    clock = time.time if options.pace else None
    size = Size(forums=options.forums, threads=options.threads, comments=options.comments, history_days=options.history_days)
    world = World(options.seed, size, options.pace, clock)  # before the loop: a signal may end it at once
    gc.collect()
    gc.freeze()  # the content stays: the collector need not check it again
    try:
        asyncio.run(run(world, options))
    except OSError as error:
        print(f"forum: {error}", file=sys.stderr)
        return 1
    return 0
