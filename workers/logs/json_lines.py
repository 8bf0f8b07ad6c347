"""Log records of worker and beat as JSON, one object a line, for a collector of fields: `TRAWL_LOG_FORMAT=json`.

| field                                | what                                                                     |
|--------------------------------------|--------------------------------------------------------------------------|
| `time`                               | RFC 3339, UTC, milliseconds                                              |
| `level`, `logger`, `message`         | as in `logging`                                                          |
| `exception`                          | the traceback, where one was logged                                      |
| `program`, `node`, `service`, `slot` | the source: worker, beat, or the crawler of a slot; `pid` too            |

A field that is unknown is left out. Foreign text cannot act on a terminal, and no line break stands within a line.

`identify` names the source of this process's lines. `never_wait` keeps a process that supervises from blocking on a
terminal, a pipe or a disk: lines that cannot be written in time are dropped.
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

_identity: dict[str, Any] = {}


def identify(**fields: Any) -> None:
    """Add fields to every log line of this process from now on; a field of "" or None is left out."""
    _identity.update({name: value for name, value in fields.items() if value not in ("", None)})


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
