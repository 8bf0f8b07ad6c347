"""Ends a process that runs out of memory, and distinguishes this end from others."""

from __future__ import annotations

import logging
import os
import resource
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil

OOM_SCORE = 500  # of -1000 to 1000; programs have 0
SLACK_BYTES = 256 * 1024 * 1024  # address space of threads' stacks and the like that is never touched


def cap(hard_bytes: int) -> None:
    """Let this process get no more than about `hard_bytes` of memory; beyond, Python raises MemoryError.

    By RLIMIT_DATA: RLIMIT_AS counts what is only mapped, and a crawler has 1 GB of that. It is a wall for what grows between two
    looks at the resident memory, so it may be further away than `hard_bytes`, by what is reserved and not used.
    """
    info = psutil.Process().memory_info()
    room = max(0, hard_bytes - info.rss) + SLACK_BYTES
    limit, (_, most) = info.data + room, resource.getrlimit(resource.RLIMIT_DATA)
    with suppress(ValueError, OSError):  # more than who started us allows: that holds already
        resource.setrlimit(resource.RLIMIT_DATA, (limit, most))


def offer_to_oom_killer(score: int = OOM_SCORE, file: Path = Path("/proc/self/oom_score_adj")) -> None:
    """Have the kernel, when memory runs out, end this process before others: its worker would take all its crawlers along.

    Raises the score only, which needs no privilege; one that is higher already stays. Nothing where there is no such file.
    """
    with suppress(OSError, ValueError):
        if int(file.read_text()) < score:
            file.write_text(str(score))


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
