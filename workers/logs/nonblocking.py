"""Logging that never blocks on a terminal, pipe or disk: lines that cannot be written in time are dropped.

For a process that supervises: a user may press Ctrl-S in the worker's terminal, or a log collector may hang. Its crawlers have
to be watched all the same.
"""

from __future__ import annotations

import copy
import logging
import logging.handlers
import queue
import time

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
