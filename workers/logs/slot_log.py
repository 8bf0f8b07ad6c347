"""The log file of one crawler slot: every process that fills the slot appends to it, and it is rotated when it has grown.

A crawler's standard output and error go to the file, so that everything is in it: Python's logging, an
uncaught traceback, `faulthandler`, the C library. Nothing stands between a crawler and its file: a worker that hangs, or dies,
neither holds it up nor loses its last lines. Readers of the lines read the file (`workers.logs.follow`).
"""

from __future__ import annotations

import fcntl
import logging
import os
import re
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from redis_components.embedded import data_dir
from redis_components.embedded.files import FILE, private_folder
from redis_components.server.names import below, service_name, slot_number
from workers.environment.variables import Logs

_FILE = re.compile(r"(?P<spider>.+)-(?P<number>\d+)\.log")


@dataclass(frozen=True, kw_only=True)
class LogLimits:
    """Limits of a slot's log: at most `kept + 1` files of about `max_bytes` each."""

    max_bytes: int = 10 * 1024 * 1024
    kept: int = 3
    """Older files: `.1` is the youngest."""

    @classmethod
    def from_environment(cls) -> LogLimits:
        """Read TRAWL_LOG_MAX_MB and TRAWL_LOG_FILES. Raises ConfigError."""
        logs = Logs.read()
        return cls(max_bytes=int(logs.log_max_mb * 1024 * 1024), kept=logs.log_files)


class SlotLog:
    """`<data>/logs/<spider>-<number>.log` and its older, rotated files in the same folder."""

    def __init__(self, path: Path, limits: LogLimits | None = None) -> None:
        self.path = path
        self.limits = limits or LogLimits.from_environment()

    @classmethod
    def of(cls, spider: str, number: int, *, folder: Callable[[], Path] = data_dir) -> SlotLog:
        """Return the log of that slot. Raises ConfigError for an invalid slot: its name is a file's."""
        return cls(below(folder(), "logs", f"{service_name(spider)}-{slot_number(number)}.log"))

    def open(self) -> int:
        """Return a descriptor to append to; the file is rotated first if it has grown too large."""
        private_folder(self.path.parent)
        fd = self._append()
        if os.fstat(fd).st_size < self.limits.max_bytes:
            return fd
        try:
            return self.successor(fd)
        finally:
            os.close(fd)

    def successor(self, fd: int) -> int:
        """Return a descriptor of the next file, when the file behind `fd` is full; the full one gets the name `.1`.

        Two processes that find it full at the same time rotate it once.
        """
        fcntl.flock(fd, fcntl.LOCK_EX)
        try:
            if self.is_current(fd):
                for n in range(self.limits.kept, 0, -1):
                    with suppress(FileNotFoundError):
                        self.file(n - 1).replace(self.file(n))
            return self._append()
        finally:
            fcntl.flock(fd, fcntl.LOCK_UN)

    def is_current(self, fd: int) -> bool:
        """Return True if the file behind `fd` is the current one."""
        try:
            return os.path.samestat(os.fstat(fd), self.path.stat())
        except FileNotFoundError:
            return False

    def file(self, age: int) -> Path:
        """Return the current file (0), or the one that was rotated `age` times."""
        return self.path.with_name(f"{self.path.name}.{age}") if age else self.path

    def files(self) -> list[Path]:
        """Return the existing files, youngest first; also older files that another setting has left."""
        rotated = [path for path in self.path.parent.glob(f"{self.path.name}.*") if path.suffix[1:].isdigit()]
        rotated.sort(key=lambda path: int(path.suffix[1:]))
        return [path for path in (self.path, *rotated) if path.is_file()]

    def _append(self) -> int:
        return os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, FILE)


def slot_logs(folder: Callable[[], Path] = data_dir) -> dict[tuple[str, int], SlotLog]:
    """Return the logs on this machine, by spider and number of the slot."""
    found = {}
    for path in sorted((folder() / "logs").glob("*.log")):
        if m := _FILE.fullmatch(path.name):
            found[m["spider"], int(m["number"])] = SlotLog(path)
    return found


def split_lines(data: bytes) -> list[str]:
    """Split a log into lines. Only a newline ends one: `str.splitlines` also takes a dozen characters that a page may bring."""
    *lines, rest = data.decode(errors="replace").split("\n")
    return [line.rstrip("\r") for line in ([*lines, rest] if rest else lines)]


STDOUT, STDERR = 1, 2
LOOK_EVERY_S = 1.0

logger = logging.getLogger(__name__)


class OwnLog:
    """Rotates this process's log in a separate thread, for the process's whole life."""

    def __init__(self, log: SlotLog, *, every_s: float = LOOK_EVERY_S) -> None:
        self.log = log
        self._every_s = every_s
        self._failing = False

    def watch(self) -> None:
        """Begin; a daemon thread, which need not be stopped."""
        threading.Thread(target=self._run, name="own-log", daemon=True).start()

    def _run(self) -> None:
        while True:
            time.sleep(self._every_s)
            try:
                self.rotate_if_full()
            except OSError as error:  # a disk that is full, a folder that is gone: crawling matters more
                if not self._failing:
                    logger.warning("the log cannot be rotated; writing continues in the old file: %s", error)
                self._failing = True
            else:
                self._failing = False

    def rotate_if_full(self) -> bool:
        """Go on in a new file when this one is full; True when that was so. Raises OSError."""
        log = self.log
        if os.fstat(STDERR).st_size < log.limits.max_bytes:
            return False
        successor = log.successor(STDERR)
        try:
            os.dup2(successor, STDOUT)
            os.dup2(successor, STDERR)
        finally:
            os.close(successor)
        return True
