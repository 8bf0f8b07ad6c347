"""Limits the crawlers of a node. Each place is a file lock: the kernel frees the place of a process that dies.

A place has its crawler's pid, also when its supervisor was killed: a crawler that was suspended at that moment (SIGSTOP) missed
the signal and would stay for ever. The node looks for such a crawler every 2 s, and so does the next process to take the place.
"""

from __future__ import annotations

import fcntl
import logging
import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from redis_components.embedded.files import private_folder

logger = logging.getLogger(__name__)


class CrawlerSeat:
    """A place that this process holds."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def note(self, pid: int) -> None:
        """Record the pid of the place's present crawler."""
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, str(pid).encode(), 0)

    def close(self) -> None:
        os.close(self._fd)


class NodeCapacity:
    """`size` places on the node called `node`; each is a file in `folder`."""

    def __init__(self, folder: Path, node: str, size: int) -> None:
        self._paths = [folder / f"{re.sub(r'[^A-Za-z0-9@._-]', '_', node)}-{n}.lock" for n in range(size)]

    @contextmanager
    def place(self) -> Iterator[CrawlerSeat | None]:
        """Hold a place while inside; None when there is none left."""
        self.end_strays()  # it would not be known any more when its place knows another crawler
        place = next((place for path in self._paths if (place := _take(path))), None)
        try:
            yield place
        finally:
            if place:
                place.close()

    def taken(self) -> int:
        """Count the places that are taken now."""
        count = 0
        for path in self._paths:
            if place := _take(path):
                place.close()
            else:
                count += 1
        return count

    def end_strays(self) -> None:
        """Kill crawlers that are frozen and have lost their supervisor; any other ends without help."""
        for path in self._paths:
            _end_stray(path)


def _end_stray(path: Path) -> None:
    try:
        pid = int(path.read_text() or 0)
    except (OSError, ValueError):  # none yet, or none that can be read
        return
    if pid and _is_stray(pid):
        logger.warning("crawler %d was frozen when its supervisor died; killing it", pid)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)


def _is_stray(pid: int) -> bool:
    try:
        process = psutil.Process(pid)
        line = process.cmdline()
        orphaned = "workers.crawler" in line and f"--parent={process.ppid()}" not in line
        return orphaned and process.status() == psutil.STATUS_STOPPED
    except psutil.Error:  # it is gone
        return False


def _take(path: Path) -> CrawlerSeat | None:
    private_folder(path.parent)
    fd = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)  # not inherited by programs that we start
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return None
    return CrawlerSeat(fd)
