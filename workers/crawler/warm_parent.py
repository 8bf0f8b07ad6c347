"""The warm parent of crawlers: `run_module.py workers.crawler.warm_parent SOCKET OWNER ROOM` imports what they import, and forks
one for each request (`workers.process.forked`).

It has one thread and no reactor, and opens no connection. Modules of the project are imported once for what they bring along,
and forgotten: a crawler imports its project as ever, so what they compute at import is its own. A project that starts threads or
keeps files open when it is imported makes it begin again, without the project.

A crawler ends with it (SIGTERM), and with its supervisor: the connection through which it was asked for is closed then. It ends
with its owner, when no crawler is left after IDLE_S, and when one of Trawl's modules has changed.
"""

from __future__ import annotations

import gc

if __name__ == "__main__":
    gc.disable()  # nothing that is imported here is garbage

import ctypes
import os
import selectors
import signal
import socket
import sys
import sysconfig
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib import import_module, invalidate_caches
from pathlib import Path
from types import ModuleType
from typing import NoReturn

import msgspec
from scrapy.settings import BaseSettings, Settings
from scrapy.utils.misc import load_object
from scrapy.utils.project import get_project_settings

from redis_components.server.variables import load_env_file
from workers.process.forked import ANSWER, is_own
from workers.process.options import CrawlerOptions
from workers.process.run_module import own_module
from workers.state.registry import SlotStory

from . import __main__ as program
from .stop_signals import Parent

IDLE_S = 120.0
BARE = "bare"
MORE = (
    "asyncio.unix_events",
    "lxml.html",
    "scrapy.core.downloader",
    "scrapy.core.engine",
    "scrapy.core.scraper",
    "scrapy.spiderloader",
    "twisted.internet.asyncioreactor",
    "redis_components.scheduler",
    "redis_components.dupefilter",
    "redis_components.stats",
    "redis_components.pipelines",
    "redis_components.scrapy_glue.custom_classes",
    "workers.crawler.http_client",
)
"""Modules that a crawl loads, and no setting names."""
_COMPONENTS = ("_MIDDLEWARES", "_PIPELINES", "EXTENSIONS", "_HANDLERS", "_STORAGES", "_EXPORTERS")
_TRAWLS = ("redis_components", "workers", "forum_reader", "forums")
_FILES = 4
_STOPS = {signal.SIGTERM, signal.SIGINT}
_LIBRARIES = tuple(
    {
        *(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")),
        *(path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")),  # a version's has the node's, too
    }
)


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
        self._owner = os.pidfd_open(owner)
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
            if len(files) != _FILES:
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
            finally:
                os._exit(1)
        child = self._children[pid] = Child(pid=pid, connection=connection)
        self._used_at = time.monotonic()
        self._selector.register(connection, selectors.EVENT_READ, child)
        connection.sendall(ANSWER.pack(pid))

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
        child.connection.close()
        child.connection = None
        if child.code is None:
            os.kill(child.pid, signal.SIGTERM)

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


def _code_of(pid: int) -> int | None:
    """Return the exit code of a child that has ended, and leave it a zombie."""
    ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    if ended is None or not ended.si_pid:
        return None
    return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status


def _crawl(parent: int, environment: dict[str, str], files: list[int]) -> NoReturn:
    """Be a crawler, in a new process."""
    os.setsid()
    request, log, pulse, page = files
    Parent(parent).bind()
    if os.getppid() != parent:
        os._exit(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for number, file in enumerate((nothing, log, log)):
        os.dup2(file, number)
    os.lseek(request, 0, os.SEEK_SET)
    with os.fdopen(request, "rb") as file_:
        options = msgspec.json.decode(file_.read(), type=CrawlerOptions)
    for file in (nothing, log):
        os.close(file)
    options = replace(options, pulse_fd=pulse, page_fd=page)
    os.environ.clear()
    os.environ.update(environment)
    invalidate_caches()
    line = replace(options, arguments={}, settings={}, story=SlotStory()).to_arguments()  # they may be secrets, and long
    sys.argv = [program.__file__ or "", *line]
    _show(own_module("workers.crawler", *line))
    if random := sys.modules.get("numpy.random"):
        random.seed()
    program.leave(program.main(options), options.pulse_fd)
    raise AssertionError


def _show(command: list[str]) -> None:
    """Have /proc, and `ps`, show this command line in place of the parent's, as far as that has room."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    begin, end = (int(field) for field in fields[45:47])  # arg_start and arg_end, fields 48 and 49
    line = "\0".join(command).encode()[: end - begin - 1]
    ctypes.memmove(begin, line.ljust(end - begin, b"\0"), end - begin)


def preload(*, bare: bool) -> None:
    """Import what a crawler of this project imports, but for the project's own modules."""
    for name in MORE:
        import_module(name)
    settings: BaseSettings = Settings()
    if not bare:
        with suppress(BaseException):  # a crawler reports it
            load_env_file()
            settings = get_project_settings()
    for path in _components(settings):
        with suppress(BaseException):
            load_object(path)
    for name, module in [*sys.modules.items()]:
        if _is_projects(name, module):
            del sys.modules[name]
    gc.collect()


def _components(settings: BaseSettings) -> Iterator[str]:
    for name in settings:
        if name.removesuffix("_BASE").endswith(_COMPONENTS):
            yield from (value for value in (*settings.getdict(name), *settings.getdict(name).values()) if _is_path(value))
        elif name.endswith(("_CLASS", "_FACTORY", "_RESOLVER", "SCHEDULER")) and _is_path(settings[name]):
            yield settings[name]


def _is_path(value: object) -> bool:
    return isinstance(value, str) and "." in value


def _is_projects(name: str, module: ModuleType) -> bool:
    """Return True for a module that is neither Trawl's nor installed, and for one with settings, which may read the time."""
    file = getattr(module, "__file__", None)
    if name == "__main__" or not file:
        return False
    if name == os.environ.get("SCRAPY_SETTINGS_MODULE"):
        return True
    return not _is_trawls(name) and not str(file).startswith((*_LIBRARIES, sys.prefix, sys.base_prefix))


def _is_trawls(name: str) -> bool:
    return name.partition(".")[0] in _TRAWLS


def _stamps() -> Iterator[tuple[str, int, int]]:
    """Yield the files of Trawl's modules, and the folders of installed packages, with the times of their last change."""
    loaded = [module for name, module in [*sys.modules.items()] if _is_trawls(name)]
    for path in (*(module.__file__ for module in loaded if module.__file__), *_LIBRARIES):
        with suppress(OSError):
            found = os.stat(path)  # noqa: PTH116 - a Path for each costs more
            yield path, found.st_mtime_ns, found.st_size


def _open_files() -> set[str]:
    found = set()
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 - names alone
        with suppress(OSError):
            found.add(os.readlink(f"/proc/self/fd/{name}"))  # noqa: PTH115
    return found


def _cannot_fork() -> bool:
    """Return True if a fork would share or lose what the imported modules have begun."""
    shared = "/dev/zero (deleted)" in Path("/proc/self/maps").read_text()
    return shared or len(os.listdir("/proc/self/task")) != 1 or "twisted.internet.reactor" in sys.modules  # noqa: PTH208


def main() -> None:
    """Import, then serve the socket."""
    descriptor, owner, *_, last = sys.argv[1:]
    environment = dict(os.environ)
    before = _open_files()
    preload(bare=last == BARE)
    if last != BARE and (_cannot_fork() or _open_files() - before):
        os.set_inheritable(int(descriptor), True)
        os.execve(sys.executable, own_module("workers.crawler.warm_parent", *sys.argv[1:], BARE), environment)  # noqa: S606 - no shell
    gc.freeze()
    WarmParent(socket.socket(fileno=int(descriptor)), int(owner), environment).serve()


if __name__ == "__main__":
    main()
    os._exit(0)
