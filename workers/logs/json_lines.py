"""Log records as JSON, one object a line, for a collector of fields: `TRAWL_LOG_FORMAT=json`.

| field                                | what                                                                     |
|--------------------------------------|--------------------------------------------------------------------------|
| `time`                               | RFC 3339, UTC, milliseconds                                              |
| `level`, `logger`, `message`         | as in `logging`                                                          |
| `exception`                          | the traceback, where one was logged                                      |
| `program`, `node`, `service`, `slot` | the source: worker, beat, crawler …; `pid` too; `job` of a finite crawl  |
| `site`, `url`, `kind`                | the page that was being read at that time                                |

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
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from redis_components.server.printable import in_json, printable
from workers.environment.variables import Logs

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings


_identity: dict[str, Any] = {}


def identify(**fields: Any) -> None:
    """Add fields to every log line of this process from now on; a field of "" or None is left out."""
    _identity.update({name: value for name, value in fields.items() if value not in ("", None)})


def identity() -> dict[str, Any]:
    """Return the fields of this process's identity."""
    return dict(_identity)


IDS = "trawl_ids"
"""Attribute of a record: more fields, which stand over this process's own (`logger.log(…, extra={IDS: {"slot": "books/0"}})`)."""


class JsonFormatter(logging.Formatter):
    """A record as one line of JSON; `now` has the process's present fields, for records without their own."""

    def __init__(self, now: Callable[[], Mapping[str, str]] = dict) -> None:
        super().__init__()
        self._now = now

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        ids = getattr(record, IDS, None)
        of_others = ids if isinstance(ids, Mapping) else self._now()
        fields = {**line, "pid": os.getpid(), **identity(), **of_others}
        safe = {name: printable(value) if isinstance(value, str) else value for name, value in fields.items()}
        return in_json(msgspec.json.encode(safe, enc_hook=str).decode())


def use_json(logger: logging.Logger) -> None:
    """Make this logger's handlers write JSON where TRAWL_LOG_FORMAT is `json`. Raises ConfigError."""
    if Logs.read().log_format == "json":
        for handler in logger.handlers:
            handler.setFormatter(JsonFormatter())


class CrawlerLog:
    """The log of a crawl. Scrapy makes a new handler, with a formatter of text, when a crawl begins: JSON needs a handler that
    stays, in place of Scrapy's. A project that logs to a file, or not at all, keeps its own way.
    """

    def __init__(self, now: Callable[[], Mapping[str, str]] = dict) -> None:
        self._now = now
        self._handler: logging.Handler | None = None

    def take_over(self, settings: BaseSettings) -> None:
        """Take Scrapy's logging over before it sets its own up. Raises ConfigError."""
        if Logs.read().log_format != "json" or settings.get("LOG_FILE") or not settings.getbool("LOG_ENABLED"):
            return
        self._handler = logging.StreamHandler()
        self._handler.setFormatter(JsonFormatter(self._now))
        self.adapt(settings)
        logging.getLogger().addHandler(self._handler)
        settings.set("LOG_ENABLED", False, priority="cmdline")

    def adapt(self, settings: BaseSettings) -> None:
        """Apply the spider's own level."""
        if self._handler:
            self._handler.setLevel(settings.get("LOG_LEVEL"))

    def give_up(self) -> None:
        """Take the handler out again, at the end of the crawl."""
        if self._handler:
            logging.getLogger().removeHandler(self._handler)


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
