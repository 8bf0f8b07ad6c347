"""Retention of the event log (TRAWL_EVENTS_DAYS)."""

from __future__ import annotations

import logging
import time

from forums.environment import Events
from forums.storage import Database
from forums.storage.event_reader import EventLog

_EVERY_S = 600.0
_next: dict[str, float] = {}  # by database: time of the next pruning in this process, by its monotonic clock

logger = logging.getLogger(__name__)


def prune_events(database: Database) -> None:
    """Drop old events, at most once in ten minutes. Raises StorageError, and ConfigError for a wrong TRAWL_EVENTS_DAYS."""
    now = time.monotonic()
    if now >= _next.get(database.name, 0.0):
        _next[database.name] = now + _EVERY_S
        if dropped := EventLog(database).prune(Events.read().events_days):
            logger.info("%s: the events of %d transactions were older than TRAWL_EVENTS_DAYS", database.name, dropped)
