"""Follows a log while it is written, through rotations and restarts of the slot's process.

`LogStream` copies a crawler's lines to the worker's log, with slot and process id: `[forum_detail/2 4711] engine: Spider closed`.
They are read from the crawler's file, in a thread. So a worker whose terminal or pipe is blocked holds up no crawler.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from contextlib import suppress
from typing import BinaryIO

from workers.environment.variables import Logs

from .json_lines import IDS
from .slot_log import LineReader, SlotLog

CHUNK = 64 * 1024
MOST_BYTES = 1024 * 1024  # in one call
LONGEST_LINE = 64 * 1024  # characters; a longer one is cut into several


class LogFollower:
    """New lines of a slot's log, again and again: `read` returns at once with what there is. Not for two threads."""

    def __init__(self, log: SlotLog, *, from_start: bool = False) -> None:
        """Follow from the end of the file as it is now, or from its start. It need not exist yet."""
        self._log = log
        self._file: BinaryIO | None = None
        self._rest = b""
        self._leave = False  # the file was rotated away: looked at once more, then left
        if not from_start and (file := self._open()):
            file.seek(0, 2)

    def read(self) -> list[str]:
        """Return the complete lines since the last call, at most about 1 MiB; more at the next one. Raises OSError."""
        data = b""
        while len(data) < MOST_BYTES and (file := self._file or self._open()):
            if chunk := file.read(CHUNK):
                data += chunk
            elif self._leave:
                self._go_on_after(file)
            elif not self._rotated(file):
                break
            else:
                # The writer has renamed it, and may write once more to it before it continues in the new one.
                self._leave = True
                break
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > LONGEST_LINE:
            lines, self._rest = [*lines, self._rest], b""
        return [line.decode(errors="replace").rstrip("\r") for line in lines]

    def position(self) -> int:
        """Return the offset in the youngest file from which on `read` will read."""
        return self._file.tell() if self._file else 0

    def close(self) -> None:
        if self._file:
            self._file.close()
            self._file = None

    def _open(self, age: int = 0) -> BinaryIO | None:
        self.close()
        with suppress(FileNotFoundError):
            self._file = self._log.file(age).open("rb", buffering=0)
            self._leave = False
        return self._file

    def _rotated(self, file: BinaryIO) -> bool:
        """Return True if the file is no longer the current one; an emptied file is read from its start."""
        if not self._log.is_current(file.fileno()):
            return self._log.path.exists()  # else between two names
        if os.fstat(file.fileno()).st_size < file.tell():
            file.seek(0)
        return False

    def _go_on_after(self, file: BinaryIO) -> None:
        """Continue with the file that was begun after this one: after several rotations that is not the youngest."""
        here = os.fstat(file.fileno())
        younger = 0
        for age in range(1, self._log.limits.kept + 1):
            try:
                if os.path.samestat(here, self._log.file(age).stat()):
                    break
            except FileNotFoundError:
                break
            younger = age
        self._open(younger)  # if it was not found, it is deleted by now: that is the oldest one left


EVERY_S = 0.5
OFF = "OFF"
_NOTHING = logging.CRITICAL + 1

logger = logging.getLogger("trawl.crawler")


def stream_level() -> int:
    """Return the lowest level of crawlers' lines that their worker shows, from TRAWL_LOG_STREAM. Raises ConfigError."""
    name = Logs.read().log_stream
    return _NOTHING if name == OFF else int(getattr(logging, name))


class LogStream:
    """Passes on what is written to a slot's log from now on. `start`, then `new_process` for each crawler, then `stop`."""

    def __init__(self, log: SlotLog, slot: str) -> None:
        self._follower = LogFollower(log)
        self._lines = LineReader()
        self._slot = slot
        self._pid = 0
        self._level = stream_level()
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"log {slot}", daemon=True)

    def start(self) -> None:
        if self._level < _NOTHING:
            self._thread.start()

    def new_process(self, pid: int) -> None:
        """Begin the output of a new crawler process."""
        self._pid = pid
        self._lines.new_process()

    def drain(self, timeout_s: float = 0.2) -> None:
        """Pass on the crawler's last lines, if the worker's log accepts them."""
        if self._level < _NOTHING and self._lock.acquire(timeout=timeout_s):
            try:
                self._pass_on()
            finally:
                self._lock.release()

    def stop(self) -> None:
        """Stop, after passing on the last lines, if the worker's log takes them."""
        self._ended.set()
        self.drain()
        if self._lock.acquire(blocking=False):  # else its thread is stuck, and may still read
            self._follower.close()
            self._lock.release()

    def _run(self) -> None:
        while not self._ended.wait(EVERY_S):
            with self._lock:
                while not self._ended.is_set() and self._pass_on():
                    time.sleep(0)  # a chatty crawler must not keep the supervisor from its turn

    def _pass_on(self) -> bool:
        try:
            lines = self._follower.read()
        except OSError as error:
            logger.warning("[%s] its log cannot be read: %s", self._slot, error)
            self._ended.set()
            return False
        for text in lines:
            line = self._lines.read(text)
            if line.level >= self._level and line.message:
                ids = {"program": "crawler", "service": self._slot.rpartition("/")[0], "slot": self._slot, "pid": self._pid}
                logger.log(line.level, "[%s %d] %s", self._slot, self._pid, line.message, extra={IDS: ids})
        return bool(lines)
