"""The warm parent of crawlers: `run_module.py workers.crawler.warm_parent SOCKET OWNER ROOM` imports what they import, and forks
one for each request (`workers.process.forked`).

It has one thread and no reactor, and opens no connection. It imports nothing of the project: a crawler imports that as ever, so
what it computes or opens at import is its own. Members of a run, which are small and many, share a process
(`workers.crawler.turns`).

A crawler ends with it (SIGTERM), and with its supervisor: the connection through which it was asked for is closed then. It ends
with its owner, when no crawler is left after IDLE_S, and when one of Trawl's modules has changed.
"""

from __future__ import annotations

import gc

if __name__ == "__main__":
    gc.disable()  # nothing that is imported here is garbage

import ctypes
import os
import select
import selectors
import signal
import socket
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib import import_module, metadata
from importlib.machinery import FileFinder
from pathlib import Path
from pkgutil import iter_modules
from typing import NoReturn

from scrapy.http import Response
from scrapy.settings import BaseSettings, Settings
from scrapy.utils.misc import load_object

from workers.application import application
from workers.process.exit_kinds import ExitKind
from workers.process.forked import ANSWER, CREDENTIALS, is_own
from workers.process.options import received
from workers.process.pipes import Parent
from workers.process.run_module import own_module

from . import __main__ as program
from .turns import PACKAGES, Turns, is_library, stamps

IDLE_S = 120.0
GOING_S = 1.0
"""Longest wait for a supervisor that is dying."""
_FILES = 5
_STOPS = {signal.SIGTERM, signal.SIGINT}


@dataclass
class Child:
    """A crawler; `code` when it has ended, `connection` while its supervisor lives."""

    pid: int
    connection: socket.socket | None
    code: int | None = None


class WarmParent:
    """Forks crawlers until its owner ends."""

    def __init__(self, listener: socket.socket, owner: int, environment: dict[str, str]) -> None:
        self._listener: socket.socket | None = listener
        self._environment = environment
        self._children: dict[int, Child] = {}
        self._selector = selectors.DefaultSelector()
        self._own = set(_stamps())
        self._wake, self._waker = os.pipe()
        for descriptor in (self._wake, self._waker):
            os.set_blocking(descriptor, False)
        self._owner = owner
        self._used_at = time.monotonic()
        for file in (listener, self._wake, self._owner):
            self._selector.register(file, selectors.EVENT_READ)

    def serve(self) -> None:
        """Return when there is nothing to do any more."""
        signal.set_wakeup_fd(self._waker)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.pthread_sigmask(signal.SIG_BLOCK, _STOPS)  # its owner's end is what ends it
        while self._listener or self._children:
            for key, _ in self._selector.select(IDLE_S / 4):
                if key.fd == self._owner:
                    return  # the kernel ends its crawlers
                if key.fd == self._wake:
                    with suppress(BlockingIOError):
                        os.read(self._wake, 4096)
                elif key.fileobj is self._listener:
                    self._take()
                elif key.data:
                    self._supervisor_is_gone(key.data)
            self._look_for_ends()
            if not self._children and time.monotonic() - self._used_at > IDLE_S:
                self._retire()

    def _retire(self) -> None:
        if self._listener:
            self._selector.unregister(self._listener)
            self._listener.close()
            self._listener = None

    def _take(self) -> None:
        assert self._listener is not None
        connection, _ = self._listener.accept()
        connection.settimeout(5.0)
        files: list[int] = []
        try:
            if is_own(connection):
                _, files, _, _ = socket.recv_fds(connection, 1, _FILES)
            given_up = select.select([connection], [], [], 0)[0]  # on a busy machine the supervisor has waited long enough
            if len(files) != _FILES or given_up:
                connection.close()
                return
            if self._own != set(_stamps()):
                self._retire()  # its other requests are refused, and asked of the next one
                connection.sendall(ANSWER.pack(0))
                connection.close()
                return
            self._fork(connection, files)
        except OSError:
            connection.close()
        finally:
            for file in files:
                os.close(file)

    def _fork(self, connection: socket.socket, files: list[int]) -> None:
        here = os.getpid()
        pid = os.fork()
        if not pid:
            try:
                self._leave(connection)
                _crawl(here, self._environment, files)
            except BaseException:
                traceback.print_exc()
            os._exit(1)
        child = self._children[pid] = Child(pid=pid, connection=connection)
        self._used_at = time.monotonic()
        self._selector.register(connection, selectors.EVENT_READ, child)
        try:
            connection.sendall(ANSWER.pack(pid))
        except OSError:  # given up just now: the supervisor executes one
            self._supervisor_is_gone(child)

    def _leave(self, connection: socket.socket) -> None:
        """Give up, in a child, what is its parent's."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPS)  # one that was sent since the fork comes now
        self._selector.close()
        for child in self._children.values():
            if child.connection:
                child.connection.close()
        connection.close()
        if self._listener:
            self._listener.close()
        for descriptor in (self._wake, self._waker, self._owner):
            os.close(descriptor)

    def _supervisor_is_gone(self, child: Child) -> None:
        """Stop a crawler whose supervisor has died; forget one whose end it knows."""
        assert child.connection is not None
        self._selector.unregister(child.connection)
        if child.code is None:
            _wait_for_end(child.connection)
            os.kill(child.pid, signal.SIGTERM)
        child.connection.close()
        child.connection = None

    def _look_for_ends(self) -> None:
        for child in [*self._children.values()]:
            if child.code is None and (code := _code_of(child.pid)) is not None:
                child.code = code
                if child.connection:
                    with suppress(OSError):
                        child.connection.sendall(ANSWER.pack(code))
            if child.code is not None and child.connection is None:
                os.waitpid(child.pid, 0)  # only now may another process get this pid
                del self._children[child.pid]


def _wait_for_end(connection: socket.socket) -> None:
    """Wait a moment for the end of the process that has closed the other end: the kernel closes its files in any order, and by
    its pipe a crawler sees that it has no supervisor any more.
    """
    pid, _, _ = CREDENTIALS.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size))
    with suppress(OSError):  # it is gone
        handle = os.pidfd_open(pid)
        select.select([handle], [], [], GOING_S)
        os.close(handle)


def _code_of(pid: int) -> int | None:
    """Return the exit code of a child that has ended, and leave it a zombie."""
    ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    if ended is None or not ended.si_pid:
        return None
    return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status


def _crawl(parent: int, environment: dict[str, str], files: list[int]) -> NoReturn:
    """Be a crawler, in a new process."""
    os.setsid()
    request, log, pulse, page, orders = files
    Parent(parent).bind()
    if os.getppid() != parent:
        os._exit(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for number, file in enumerate((nothing, log, log)):
        os.dup2(file, number)
    options = received(request)
    for file in (nothing, log):
        os.close(file)
    os.environ.clear()
    os.environ.update(environment)
    turns = Turns(orders, pulse)
    while True:
        for path, finder in sys.path_importer_cache.items():
            if isinstance(finder, FileFinder) and not is_library(path):
                finder.invalidate_caches()  # files may be new
        options = replace(options, pulse_fd=pulse, page_fd=page)
        line = options.to_arguments()
        sys.argv = [program.__file__ or "", *line]
        _show(own_module("workers.crawler", *line))
        kind = program.main(options, turns)
        if (following := turns.after(options, kind)) is None:
            # A crawl that it was given in this moment has not begun: its supervisor starts it again.
            program.leave(ExitKind.ABORTED if turns.rests else kind, options.pulse_fd)
            raise AssertionError
        options = following


def _show(command: list[str]) -> None:
    """Have /proc, and `ps`, show this command line in place of the parent's, as far as that has room."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    begin, end = (int(field) for field in fields[45:47])  # arg_start and arg_end, fields 48 and 49
    line = "\0".join(command).encode()[: end - begin - 1]
    ctypes.memmove(begin, line.ljust(end - begin, b"\0"), end - begin)


def _stamps() -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield the files of Trawl's modules, and the folders of installed packages, with the times of their last change."""
    loaded = [module for name, module in [*sys.modules.items()] if name.partition(".")[0] in _TRAWLS]
    packages = [path for path in sys.path if path.endswith(PACKAGES)]
    yield from stamps((*(module.__file__ for module in loaded if module.__file__), *packages))


MORE = (
    "asyncio.unix_events",
    "lxml.html",
    "scrapy.core.downloader",
    "scrapy.core.engine",
    "scrapy.core.scraper",
    "scrapy.spiderloader",
    "twisted.internet.asyncioreactor",
    "redis_components.dupefilter",
    "redis_components.extensions",
    "redis_components.pipelines",
    "redis_components.scheduler",
    "redis_components.stats",
    "redis_components.scrapy_glue.conditional",
    "redis_components.scrapy_glue.custom_classes",
    "redis_components.scrapy_glue.retry_after",
    "redis_components.scrapy_glue.robots",
    "workers.breaker.hosts",
    "workers.http.client",
)
"""Modules that a crawl loads, and no default setting names."""
_COMPONENTS = ("_MIDDLEWARES_BASE", "_PIPELINES_BASE", "EXTENSIONS_BASE", "_HANDLERS_BASE", "_STORAGES_BASE", "_EXPORTERS_BASE")
_TRAWLS = ("redis_components", "workers", "fleet_operations", "forum_reader", "forums")


def preload() -> None:
    """Import what a crawler imports of Scrapy, of Trawl and of the application's spiders."""
    for name in MORE:
        import_module(name)
    with suppress(ImportError):  # it is none on Windows
        import_module("uvloop")
    settings = Settings()
    for name in filter(lambda name: name.endswith(_COMPONENTS), settings):
        for path in (*settings.getdict(name), *settings.getdict(name).values()):
            with suppress(Exception):  # a place, or a part whose package is missing
                load_object(path)
    for package in BaseSettings(dict(application().scrapy_settings())).getlist("SPIDER_MODULES"):
        for found in iter_modules(import_module(package).__path__, f"{package}."):
            import_module(found.name)
    application().verdict(Response("http://example.org"))  # what it needs is loaded at the first page
    metadata.version("redis")  # which redis-py asks for each connection: its first look goes through a folder
    gc.collect()


def main() -> None:
    """Import, then serve the socket."""
    descriptor, owner, *_ = sys.argv[1:]
    environment = dict(os.environ)
    with suppress(ProcessLookupError):  # it has ended
        handle = os.pidfd_open(int(owner))
        preload()
        gc.freeze()
        WarmParent(socket.socket(fileno=int(descriptor)), handle, environment).serve()


if __name__ == "__main__":
    main()
    os._exit(0)
