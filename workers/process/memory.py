"""Ends a process that runs out of memory, and distinguishes this end from others."""

from __future__ import annotations

import _posixsubprocess
import logging
import os
import resource
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import wraps
from pathlib import Path
from types import ModuleType
from typing import Any

import psutil

OOM_SCORE = 500  # of -1000 to 1000; programs have 0
SLACK_BYTES = 256 * 1024 * 1024  # address space of threads' stacks and the like that is never touched


def cap(hard_bytes: int) -> None:
    """Let this process get no more than about `hard_bytes` of memory; beyond, Python raises MemoryError. 0: any number again.

    By RLIMIT_DATA: RLIMIT_AS counts what is only mapped, and a crawler has 1 GB of that. It is a wall for what grows between two
    looks at the resident memory, so it may be further away than `hard_bytes`, by what is reserved and not used. Processes that
    this one starts do not inherit it.
    """
    global _wall
    if not (hard_bytes or _wall):
        return
    info = psutil.Process().memory_info()
    room = max(0, hard_bytes - info.rss) + SLACK_BYTES
    before = _wall.before if _wall else resource.getrlimit(resource.RLIMIT_DATA)
    limit = (info.data + room, before[1]) if hard_bytes else before
    with suppress(ValueError, OSError):  # more than who started us allows: that holds already
        resource.setrlimit(resource.RLIMIT_DATA, limit)
        if _wall:
            _wall.limit = limit
        else:
            _wall = _Wall(before, limit)
            _wall.spare_children()


class _Wall:
    """RLIMIT_DATA of this process, lifted for the moment in which another is started.

    A child inherits the limit that holds at its fork, and a browser reserves gigabytes that it does not use.
    """

    STARTS: tuple[tuple[ModuleType, str], ...] = (
        (subprocess, "_fork_exec"),
        (_posixsubprocess, "fork_exec"),  # of multiprocessing
        (os, "posix_spawn"),
        (os, "posix_spawnp"),  # of Twisted
        (os, "system"),
    )

    def __init__(self, before: tuple[int, int], limit: tuple[int, int]) -> None:
        self.before, self.limit = before, limit
        self._lock, self._starting = threading.Lock(), 0

    def spare_children(self) -> None:
        for module, name in self.STARTS:
            if start := getattr(module, name, None):
                setattr(module, name, self._around(start))
        os.register_at_fork(before=self._lift, after_in_parent=self._put_up, after_in_child=self._stay_lifted)

    def _around(self, start: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(start)
        def started(*args: Any, **kwargs: Any) -> Any:
            self._lift()
            try:
                return start(*args, **kwargs)
            finally:
                self._put_up()

        return started

    def _lift(self) -> None:
        with self._lock:
            self._starting += 1
            resource.setrlimit(resource.RLIMIT_DATA, self.before)

    def _put_up(self) -> None:
        with self._lock:
            self._starting -= 1
            if not self._starting:
                resource.setrlimit(resource.RLIMIT_DATA, self.limit)

    def _stay_lifted(self) -> None:
        self._lock, self._starting = threading.Lock(), 1  # another thread may have held the lock at the fork


_wall: _Wall | None = None


def offer_to_oom_killer(file: Path = Path("/proc/self/oom_score_adj")) -> None:
    """Have the kernel, when memory runs out, end this process before others: its worker would take all its crawlers along.

    Raises the score only, which needs no privilege; one that is higher already stays. Nothing where there is no such file.
    """
    with suppress(OSError, ValueError):
        if int(file.read_text()) < OOM_SCORE:
            file.write_text(str(OOM_SCORE))


def leave_on_memory_error(leave: Callable[[], None]) -> None:
    """Call `leave` when any thread gets no more memory. It must not return.

    A framework catches what a callback raises, MemoryError like others: it would count the page as done. But it logs it first.
    """
    logging.getLogger().addHandler(_Listener(leave))

    def in_thread(args: threading.ExceptHookArgs) -> None:
        threading.__excepthook__(args)
        if issubclass(args.exc_type, MemoryError):
            leave()

    threading.excepthook = in_thread


class _Listener(logging.Handler):
    def __init__(self, leave: Callable[[], None]) -> None:
        super().__init__(logging.ERROR)
        self._leave = leave

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and isinstance(record.exc_info[1], MemoryError):
            self._leave()


def resident(pid: int) -> int:
    """Return the resident bytes of another process; 0 when it is gone."""
    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:
        return 0


class ProcessTree:
    """A process and those that it has started, such as a browser; also those whose parent has ended meanwhile."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._others: set[psutil.Process] = set()

    def resident(self) -> int:
        """Return the resident bytes of all; pages that several of them share are counted once."""
        self.look()
        if not self._others:
            return resident(self._pid)
        return sum(map(_part, [self._pid, *(one.pid for one in self._others)]))

    def look(self) -> None:
        """Learn which processes there are: who started one is not known any more when its parent has ended."""
        self._others = {one for one in self._others if one.is_running()}
        parents = [self._pid, *(one.pid for one in self._others)]
        for parent in parents:
            for pid in _children(parent):
                with suppress(psutil.Error):
                    if (one := psutil.Process(pid)) not in self._others:
                        self._others.add(one)
                        parents.append(pid)

    def kill_others(self) -> None:
        """Send SIGKILL to the processes that it started, as far as they were seen."""
        for one in self._others:
            with suppress(psutil.Error):
                one.kill()


def _children(pid: int) -> Iterator[int]:
    """Yield the children of a process, without a look at all of the machine; none where the kernel lists no children."""
    with suppress(OSError, ValueError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with suppress(FileNotFoundError):
                yield from map(int, (thread / "children").read_text("ascii").split())


def _part(pid: int) -> int:
    """Return a process's part of its resident pages, each divided by the number of processes that have it."""
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        with suppress(psutil.AccessDenied, AttributeError):  # a sandbox of a browser lets no other process read that
            return int(process.memory_full_info().pss)
        info = process.memory_info()
        return int(info.rss - getattr(info, "shared", 0))
    return 0


def oom_kills(places: tuple[Path, ...] = (Path("/sys/fs/cgroup/memory.events"), Path("/proc/vmstat"))) -> int:
    """Return the number of processes that the kernel killed for lack of memory, in this container, else on the machine; 0 if
    unknown.
    """
    for place in places:
        with suppress(OSError, ValueError):
            for line in place.read_text().splitlines():
                name, _, count = line.partition(" ")
                if name == "oom_kill":
                    return int(count)
    return 0


def private_memory(name: str) -> int:
    """Return a new descriptor, to be closed by the caller. `name` is shown in `/proc/PID/fd`; it opens nothing."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create(name)
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
