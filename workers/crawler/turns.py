"""Several crawls in one process, one after the other: members of a run, which are small and many.

After a crawl that finished, the process reports that it rests, and is given the next one by its supervisor, on a socket. What a
crawl has left behind (threads, timers, tasks, children, changed settings, memory) would be its neighbours': then it ends, as it
does after MOST_CRAWLS, after MOST_AGE_S, and where files of its project have changed. A crawl that must be alone in its process
has the setting OWN_PROCESS.
"""

from __future__ import annotations

import asyncio
import faulthandler
import logging
import os
import select
import signal
import socket
import sys
import sysconfig
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import psutil
from scrapy import Spider
from scrapy.settings import BaseSettings, default_settings

from workers.logs.slot_log import SlotLog
from workers.process.exit_kinds import ExitKind
from workers.process.options import CrawlerOptions, received
from workers.process.pipes import StopSignals, announce, announce_rest
from workers.state.group_runs import RUN

MOST_CRAWLS = 200
MOST_AGE_S = 3600.0
MOST_MEMORY_BYTES = 64 << 20
"""That it may have more than after its first crawl."""
MOST_FILES = 20
"""Descriptors that it may have more than after its first crawl."""
REST_S = 20.0
"""Longest wait for the next crawl."""
SETTLE_S = 3.0
"""Time for threads and tasks of a crawl that are ending."""
OWN_PROCESS = "OWN_PROCESS"
"""Scrapy's setting of a spider that shares its process with no other crawl."""
PACKAGES = ("/site-packages", "/dist-packages")
_STDLIB = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib")})
_OURS = ("crochet", "workers.", "fleet_operations.", "redis_components.", "twisted.internet.process")
"""Beginnings of the modules whose timers stay."""
_THREADS = ("MainThread", "Crochet", "PoolThread-", "asyncio_")
"""Beginnings of the names of threads that stay."""

logger = logging.getLogger(__name__)


def is_library(path: str) -> bool:
    """Return True for a path of Python or of an installed package."""
    return path.startswith(_STDLIB) or path.endswith(PACKAGES) or any(f"{folder}/" in path for folder in PACKAGES)


def stamps(paths: Iterable[str]) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield files and folders that there are, with the times of their last change and their sizes."""
    for path in paths:
        with suppress(OSError):
            found = os.stat(path)  # noqa: PTH116 - a Path for each costs more
            yield path, (found.st_mtime_ns, found.st_size)


class OwnProcessNeeded(Exception):
    """A crawl that cannot follow others in this process; its supervisor starts it again in a new one."""


class Turns:
    """The crawls of one process; made before the first one."""

    def __init__(self, orders: int, pulse_fd: int) -> None:
        self._orders = socket.socket(fileno=orders)
        self._pulse_fd = pulse_fd
        self.signals = StopSignals()
        self.signals.listen()
        self.number = 0
        """Crawls that are over."""
        self._began_at = time.monotonic()
        self._before: dict[str, object] = {}
        self._memory_bytes = self._files = 0
        self._stamps: dict[str, tuple[int, int]] = {}
        self._libraries: set[str] = set()
        self.alone = False
        """The present crawl shares its process with no other."""
        self.rests = False
        """Its supervisor knows that the crawl is over, and may give it another one at any time."""

    def begins(self, settings: BaseSettings) -> None:
        """Note the state of this process before the crawl."""
        self._before = self._before or _state()
        self.alone = settings.getbool(OWN_PROCESS)

    def check(self, spider: type[Spider]) -> None:
        """Raise OwnProcessNeeded for a crawl that shares its process with no other, if this one has had one."""
        self.alone = self.alone or bool((spider.custom_settings or {}).get(OWN_PROCESS))
        if self.alone and self.number:
            raise OwnProcessNeeded("its setting OWN_PROCESS asks for a separate process")

    def after(self, options: CrawlerOptions, kind: ExitKind) -> CrawlerOptions | None:
        """Return the next crawl, once it is given; None where this process has to end."""
        if kind is not ExitKind.FINISHED or RUN not in options.settings or self.alone:
            return None
        if why := self._reason_to_end():
            logger.info("the next crawl gets a new process: %s", why)
            return None
        faulthandler.cancel_dump_traceback_later()
        signal.signal(signal.SIGCONT, signal.SIG_DFL)
        announce(self._pulse_fd, kind)
        self.rests = True
        announce_rest(self._pulse_fd)
        following = self._taken()
        if following:
            self.rests = False
            _log_to(SlotLog(Path(following.log_file)))
        return following

    def _taken(self) -> CrawlerOptions | None:
        deadline = time.monotonic() + REST_S
        while not self.signals.count and time.monotonic() < deadline:
            self.signals.wake.wait(REST_S, self._orders.fileno())
            if select.select([self._orders], [], [], 0)[0]:
                break
        else:
            return None
        with suppress(OSError):
            _, files, _, _ = socket.recv_fds(self._orders, 1, 1)
            return received(files[0]) if files else None
        return None

    def _reason_to_end(self) -> str:
        """Return why this process should take no further crawl; "" if it may."""
        self.number += 1
        if self.number >= MOST_CRAWLS or time.monotonic() - self._began_at > MOST_AGE_S:
            return f"this one is old, after {self.number} crawls"
        process = psutil.Process()
        memory, files = process.memory_info().rss, len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - names alone
        self._memory_bytes, self._files = self._memory_bytes or memory, self._files or files
        if memory - self._memory_bytes > MOST_MEMORY_BYTES:
            return f"this one has grown to {memory >> 20} MiB"
        if files - self._files > MOST_FILES:
            return f"{files - self._files} more files are open than after the first crawl"
        found = dict(self._own_stamps())
        if any(found.get(path) != stamp for path, stamp in self._stamps.items()):
            return "files of the project have changed"
        self._stamps = found
        return self._left_behind()

    def _own_stamps(self) -> Iterator[tuple[str, tuple[int, int]]]:
        """Yield the loaded files of the project, with the times of their last change and their sizes."""
        for name, module in [*sys.modules.items()]:
            if name in self._libraries:
                continue
            path = getattr(module, "__file__", None)
            if not path or is_library(path) or name.startswith(_OURS):
                self._libraries.add(name)
                continue
            yield from stamps([path])

    def _left_behind(self) -> str:
        """Return what the crawl has left in this process; "" for nothing."""
        deadline = time.monotonic() + SETTLE_S
        while found := next(_at_work(), ""):
            if time.monotonic() > deadline:
                return f"the crawl has left {found}"
            time.sleep(0.01)
        now = _state()
        changed = [name for name, value in self._before.items() if now[name] != value]
        return f"the crawl has changed {', '.join(changed)}" if changed else ""


def _log_to(log: SlotLog) -> None:
    """Write to the log of another slot from now on."""
    sys.stdout.flush()
    sys.stderr.flush()
    descriptor = log.open()
    for number in (1, 2):
        os.dup2(descriptor, number)
    os.close(descriptor)


def _at_work() -> Iterator[str]:
    """Yield what still works in this process although no crawl does."""
    for thread in threading.enumerate():
        if not thread.name.startswith(_THREADS):
            yield f"the thread {thread.name}"
    if "twisted.internet.reactor" not in sys.modules:
        return
    reactor: Any = import_module("twisted.internet.reactor")
    for call in reactor.getDelayedCalls():
        if not _is_ours(call.func):
            yield f"the timer {call.func!r:.200}"
    if loop := getattr(reactor, "_asyncioEventloop", None):
        with suppress(RuntimeError):  # it changes just now
            yield from (f"the task {task.get_coro()!r:.200}" for task in asyncio.all_tasks(loop))
    for task_folder in os.listdir("/proc/self/task"):  # noqa: PTH208
        with suppress(OSError):
            if children := Path(f"/proc/self/task/{task_folder}/children").read_text("ascii").split():
                yield f"the process {children[0]}"


def _is_ours(call: Any) -> bool:
    """Return True for a timer of Trawl's own; that of a LoopingCall is its function's."""
    function = getattr(call, "f", call)
    return str(getattr(function, "__module__", "")).startswith(_OURS)


def _state() -> dict[str, object]:
    """Return what a crawl must leave as it found it, by name."""
    project = sys.modules.get(os.environ.get("SCRAPY_SETTINGS_MODULE", ""))
    return {
        "the environment": {name: value for name, value in os.environ.items() if not name.startswith("SCRAPY_")},
        "the folder": Path.cwd(),
        "Scrapy's default settings": _values(default_settings),
        "the project's settings": _values(project),
        "the standard output": (sys.stdout, sys.stderr),
        "handlers of signals": [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM)],
        "the level of logging": logging.root.manager.disable,
    }


def _values(settings: ModuleType | None) -> str:
    return repr([(name, value) for name, value in [*vars(settings).items()] if name.isupper()]) if settings else ""
