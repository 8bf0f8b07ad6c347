"""What all tasks have in common."""

from __future__ import annotations

import contextlib
from typing import Any

import redis
from celery import Task

from redis_components.connection import connect
from redis_components.errors import TrawlError
from redis_components.registry import Registry
from workers.node import GivenUp


class FleetTask(Task):
    """A task whose failures are shown by `trawl status`. A TrawlError is one line in the log, anything else a traceback."""

    throws = (TrawlError,)

    def on_failure(self, exc: Exception, *_: Any) -> None:
        if isinstance(exc, GivenUp):  # its supervisor has said so
            return
        with contextlib.suppress(redis.RedisError, TrawlError):  # without Redis there is no list to put it in
            Registry(connect()).report_error(self.name, " ".join(f"{type(exc).__name__}: {exc}".split()))
