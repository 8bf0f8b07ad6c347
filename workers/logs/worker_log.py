"""The log of worker and beat: its crawlers' lines among its own, as text or JSON (`TRAWL_LOG_FORMAT=json`), one object a line.

`LogStream` copies a crawler's lines, with slot and process id: `[forum_detail/2 4711] engine: Spider closed`. They are read from
the crawler's file. So a worker whose terminal or pipe is blocked holds up no crawler. `never_wait` keeps a process that
supervises from blocking on a terminal, a pipe or a disk: lines that cannot be written in time are dropped.

| field                                | what                                                                     |
|--------------------------------------|--------------------------------------------------------------------------|
| `time`                               | RFC 3339, UTC, milliseconds                                              |
| `level`, `logger`, `message`         | as in `logging`                                                          |
| `exception`                          | the traceback, where one was logged                                      |
| `program`, `node`, `service`, `slot` | the source: worker, beat, or the crawler of a slot; `pid` too            |

A field that is unknown is left out. Foreign text cannot act on a terminal, and no line break stands within a line.

`identify` names the source of this process's lines.
"""

from __future__ import annotations

import copy
import logging
import logging.handlers
import os
import queue
import time
from datetime import UTC, datetime
from typing import Any

import msgspec

from redis_components.server.printable import in_json, printable
from workers.environment.variables import Logs

from .slot_log import LineReader, LogFollower, SlotLog

_identity: dict[str, Any] = {}


def identify(**fields: Any) -> None:
    """Add fields to every log line of this process from now on."""
    _identity.update(fields)


IDS = "trawl_ids"
"""Attribute of a record: more fields, which stand over this process's own (`logger.log(…, extra={IDS: {"slot": "books/0"}})`)."""


class JsonFormatter(logging.Formatter):
    """A record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        fields = {**line, "pid": os.getpid(), **_identity, **getattr(record, IDS, {})}
        safe = {name: printable(value) if isinstance(value, str) else value for name, value in fields.items()}
        return in_json(msgspec.json.encode(safe, enc_hook=str).decode())


def use_json(logger: logging.Logger) -> None:
    """Make this logger's handlers write JSON where TRAWL_LOG_FORMAT is `json`. Raises ConfigError."""
    if Logs.read().log_format == "json":
        for handler in logger.handlers:
            handler.setFormatter(JsonFormatter())


MOST_LINES = 10_000  # that wait
CLOSE_S = 1.0


class PatientHandler(logging.handlers.QueueHandler):
    """Hands records to a thread that has the handlers which may block."""

    def __init__(self, handlers: list[logging.Handler], most: int = MOST_LINES) -> None:
        self._waiting: queue.Queue[logging.LogRecord] = queue.Queue(most)
        super().__init__(self._waiting)
        self._left_out = 0
        self._listener = logging.handlers.QueueListener(self._waiting, *handlers, respect_handler_level=True)
        self._listener.start()

    def close(self) -> None:
        """Wait a moment for the last lines, at the end of the process."""
        deadline = time.monotonic() + CLOSE_S
        while not self._waiting.empty() and time.monotonic() < deadline:
            time.sleep(0.01)
        super().close()

    def prepare(self, record: logging.LogRecord) -> logging.LogRecord:
        """Return a copy that no longer depends on its arguments, which may change meanwhile. It is formatted in the other
        thread.
        """
        record = copy.copy(record)
        record.msg, record.args = record.getMessage(), None
        return record

    def enqueue(self, record: logging.LogRecord) -> None:
        try:
            self._waiting.put_nowait(record)
        except queue.Full:
            self._left_out += 1
            return
        if self._left_out:
            text = f"{self._left_out} lines were left out here: the log did not take them"
            self._left_out = 0
            self.enqueue(logging.LogRecord(__name__, logging.WARNING, __file__, 0, text, None, None))


def never_wait() -> None:
    """Serve the handlers of this process's loggers by threads from now on. Once in a process, after its last fork."""
    for logger in (logging.getLogger(), *map(logging.getLogger, ("celery", "celery.task", "celery.redirected"))):
        if logger.handlers and not any(isinstance(handler, PatientHandler) for handler in logger.handlers):
            handlers, logger.handlers = logger.handlers, []
            logger.addHandler(PatientHandler(handlers))


OFF = "OFF"
_NOTHING = logging.CRITICAL + 1

logger = logging.getLogger("trawl.crawler")


def stream_level() -> int:
    """Return the lowest level of crawlers' lines that their worker shows, from TRAWL_LOG_STREAM. Raises ConfigError."""
    name = Logs.read().log_stream
    return _NOTHING if name == OFF else int(getattr(logging, name))


class LogStream:
    """Passes on what is written to a slot's log from now on: `new_process` for each crawler, `pass_on` often, then `close`."""

    def __init__(self, log: SlotLog, slot: str) -> None:
        self._follower = LogFollower(log)
        self._lines = LineReader()
        self._slot = slot
        self._pid = 0
        self._level = stream_level()

    def new_process(self, pid: int) -> None:
        """Begin the output of a new crawler process."""
        self._pid = pid
        self._lines.new_process()

    def pass_on(self) -> None:
        """Log the new lines. It never waits for the worker's log (`never_wait`)."""
        if self._level == _NOTHING:
            return
        try:
            lines = self._follower.read()
        except OSError as error:
            logger.warning("[%s] its log cannot be read: %s", self._slot, error)
            self._level = _NOTHING
            return
        for text in lines:
            line = self._lines.read(text)
            if line.level >= self._level and line.message:
                ids = {"program": "crawler", "service": self._slot.rpartition("/")[0], "slot": self._slot, "pid": self._pid}
                logger.log(line.level, "[%s %d] %s", self._slot, self._pid, line.message, extra={IDS: ids})

    def close(self) -> None:
        """Log the last lines, and close the file."""
        self.pass_on()
        self._follower.close()
