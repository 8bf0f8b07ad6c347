"""Copies a crawler's lines to the worker's log, with slot and process id: `[forum_detail/2 4711] engine: Spider closed`.

They are read from the crawler's file, in a thread. So a worker whose terminal or pipe is blocked holds up no crawler: the file
has everything, the crawler does not depend on it, and the supervisor's loop never waits for this thread.
"""

from __future__ import annotations

import logging
import threading
import time

from workers.environment.variables import Logs

from .follow import LogFollower
from .json_lines import IDS
from .lines import LineReader
from .slot_log import SlotLog

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
                ids = {"slot": self._slot, **line.ids, "pid": self._pid}
                logger.log(line.level, "[%s %d] %s", self._slot, self._pid, line.message, extra={IDS: ids})
        return bool(lines)
