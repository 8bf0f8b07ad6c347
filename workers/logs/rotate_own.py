"""Rotates a crawler's own log: when the file behind its standard output and error is full, both continue in a new file.

The descriptors 1 and 2 themselves are moved, so that what C code and `faulthandler` write follows, and so do programs that the
crawler starts later.
"""

from __future__ import annotations

import logging
import os
import threading
import time

from .slot_log import SlotLog

STDOUT, STDERR = 1, 2
LOOK_EVERY_S = 1.0

logger = logging.getLogger(__name__)


class OwnLog:
    """Rotates this process's log in a separate thread, for the process's whole life."""

    def __init__(self, log: SlotLog, *, every_s: float = LOOK_EVERY_S) -> None:
        self._log = log
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
        if os.fstat(STDERR).st_size < self._log.limits.max_bytes:
            return False
        successor = self._log.successor(STDERR)
        try:
            os.dup2(successor, STDOUT)
            os.dup2(successor, STDERR)
        finally:
            os.close(successor)
        return True
