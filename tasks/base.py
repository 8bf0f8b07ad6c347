"""What all tasks have in common: failures are shown, and a round that beat has sent is begun once."""

from __future__ import annotations

import contextlib
import logging
from typing import Any

import redis
from celery import Task

from redis_components.connection import connect
from redis_components.errors import TrawlError
from redis_components.registry import Registry
from redis_components.schedules import Schedules
from workers.node import GivenUp

ROUND_HEADER = "trawl_round"
"""Of messages that beat sends: `[entry, fencing token of the beat, when the round was due]`."""

logger = logging.getLogger(__name__)


class FleetTask(Task):
    """A task whose failures are shown by `trawl status`. A TrawlError is one line in the log, anything else a traceback."""

    throws = (TrawlError,)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run it, unless it is a round that was begun already: sent or delivered twice, or by a beat that was replaced."""
        sent_by_beat = getattr(self.request, ROUND_HEADER, None)
        if sent_by_beat:
            name, token, due = sent_by_beat
            if not Schedules(connect()).begin(name, token, due):
                logger.info("%s: this round of %s was begun already", self.name, name)
                return None
        return super().__call__(*args, **kwargs)

    def on_failure(self, exc: Exception, *_: Any) -> None:
        if isinstance(exc, GivenUp):  # its supervisor has said so
            return
        with contextlib.suppress(redis.RedisError, TrawlError):  # without Redis there is no list to put it in
            Registry(connect()).report_error(self.name, " ".join(f"{type(exc).__name__}: {exc}".split()))
