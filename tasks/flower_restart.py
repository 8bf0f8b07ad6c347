"""Resets crawlers in Flower's saved state until their next events.

Flower keeps tasks in a file and restores them as they were. A crawler that ended meanwhile sends no event any more, so it would
be running on the screen for ever. Here each one that was running is stopped in the file, before Flower starts; a living one
sends its figures every 2 s, and is running again with the first of these.
"""

from __future__ import annotations

import dbm
import logging
import pickle
import shelve
from typing import Any

CRAWLING, STOPPED = "CRAWLING", "STOPPED"  # as tasks/flower_crawlers.py makes them
NO_EVENT = "no event since Flower was started"
_UNREADABLE: tuple[type[Exception], ...] = (
    *dbm.error,
    *(pickle.PickleError, EOFError, AttributeError, ImportError, LookupError, TypeError, ValueError),
)

logger = logging.getLogger(__name__)


def stop_crawlers(path: str) -> int:
    """Stop the running crawlers of the file and return their number. A file that cannot be read is left to Flower, which moves
    it aside.
    """
    try:
        with shelve.open(path, flag="w") as kept:  # noqa: S301 - Flower itself reads it next
            state: Any = kept.get("events")
            running = [task for task in state.tasks.values() if task.state == CRAWLING] if state else []
            for task in running:
                task.state, task.result = STOPPED, NO_EVENT
            if running:
                kept["events"] = state
            return len(running)
    except _UNREADABLE as error:
        logger.debug("%s: %s", path, error)  # there is none yet, too
        return 0
