"""Ends a process that runs out of memory, and distinguishes this end from others."""

from __future__ import annotations

import os
import resource
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil

OOM_SCORE = 500  # of -1000 to 1000; programs have 0


def cap(more_bytes: int) -> None:
    """Let this process, and those that it starts, get so much more memory; beyond, Python raises MemoryError."""
    limit = psutil.Process().memory_info().data + more_bytes
    with suppress(ValueError, OSError):  # more than who started us allows: that holds already
        resource.setrlimit(resource.RLIMIT_DATA, (limit, resource.getrlimit(resource.RLIMIT_DATA)[1]))


def offer_to_oom_killer(file: Path = Path("/proc/self/oom_score_adj")) -> None:
    """Have the kernel, when memory runs out, end this process before others: its worker would take all its crawlers along.

    Raises the score only, which needs no privilege; one that is higher already stays. Nothing where there is no such file.
    """
    with suppress(OSError, ValueError):
        if int(file.read_text()) < OOM_SCORE:
            file.write_text(str(OOM_SCORE))


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
