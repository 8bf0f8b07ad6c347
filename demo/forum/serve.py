"""Server process from start to end: grow the content, listen, report the address, run events, stop."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import os
import signal
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from aiohttp import web

from redis_components.errors import TrawlError

from .behaviour import Behaviour
from .event_clock import run_events
from .server import ForumServer
from .world import Size, World, liveliness

_GOODBYE_S = 1.0  # time for pages in flight to finish


class CannotServe(TrawlError):
    """The forum cannot listen or cannot write its ready file; the message names the place and the fix."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of the command line; `port` 0 is any free one. `pace` 0: no clock, events alone move time (`world.py`)."""

    host: str = "127.0.0.1"
    port: int = 0
    seed: int = 1
    size: Size = field(default_factory=Size)
    pace: float = 0.0
    behaviour: Behaviour = field(default_factory=Behaviour)
    ready_file: Path | None = None


async def run(world: World, options: Options) -> None:
    """Serve `world` until SIGTERM or SIGINT. Raises CannotServe."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    forum = ForumServer(world, options.behaviour, options.seed)
    runner = web.AppRunner(forum.application(), access_log=None, shutdown_timeout=_GOODBYE_S)
    await runner.setup()
    try:
        url = await _listen(runner, options)
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


async def _listen(runner: web.AppRunner, options: Options) -> str:
    try:
        await web.TCPSite(runner, options.host, options.port).start()
    except OSError as refused:
        reason = os.strerror(refused.errno) if refused.errno and refused.errno > 0 else str(refused)
        raise CannotServe(
            f"forum: cannot listen on {options.host} port {options.port}: {reason}; "
            "choose another --port (0 takes any free one) or --host"
        ) from refused
    host, port = runner.addresses[0][:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _write_ready(path: Path, url: str) -> None:
    """Write the file atomically, so that a reader never sees a part of it."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        unfinished.write_text(json.dumps({"url": url, "pid": os.getpid()}), "utf-8")
        unfinished.replace(path)
    except OSError as refused:
        with contextlib.suppress(OSError):
            unfinished.unlink(missing_ok=True)
        raise CannotServe(
            f"forum: cannot write --ready-file {path}: {refused.strerror}; name a file in a folder that exists"
        ) from refused


def main(options: Options) -> int:
    """Run the server; return the exit code, 0 after a signal and 1 if it cannot serve."""
    clock = time.time if options.pace else None
    world = World(options.seed, options.size, options.pace, clock)  # before the loop: a signal may end it at once
    gc.collect()
    gc.freeze()  # the content stays: the collector need not check it again
    try:
        asyncio.run(run(world, options))
    except CannotServe as refused:
        print(refused, file=sys.stderr)
        return 1
    return 0
