"""Waits while Redis answers with errors, as Celery waits for a Redis that is unreachable.

MISCONF (its disk is full), READONLY (it became a replica), NOREPLICAS, OOM, NOPERM, NOAUTH, BUSY and LOADING pass. Celery ends
a worker for most of them, with its crawlers; with `broker_channel_error_retry` (celeryconfig.py) it connects again, which
succeeds, and fails at its first write, several times a second. So before it connects again it waits here until a write is taken.

A worker's own events (its heartbeat for Flower), sent without waiting for the broker.

Celery sends the heartbeat from the worker's event loop and tries again until the broker is back, for up to 30 s at a time. A
worker whose heartbeat was due in the moment in which Redis went away stood still in there: it neither noticed the lost
connection nor took a task (one outage in fifty). Here an event that cannot be sent is kept by the dispatcher, which sends it
after the reconnection.
"""

from __future__ import annotations

import logging
import re
import time
import warnings
from collections.abc import Callable
from typing import Any

import redis
from celery import bootsteps
from celery.app import events
from celery.events.dispatcher import EventDispatcher
from celery.exceptions import CPendingDeprecationWarning
from celery.worker import state

from redis_components.connection import connect, explain
from redis_components.embedded import redis_url
from redis_components.errors import TrawlError
from redis_components.server.url import impatient
from workers.environment.variables import Fleet
from workers.state.keys import FleetKeys

from .base import around_reconnection

LOOK_S = 1.0
ANSWER_S = 3.0
PROBE_TTL_MS = 1000

logger = logging.getLogger(__name__)


class RefusingBroker(bootsteps.Step):
    """Puts the wait before each reconnection of a consumer."""

    def __init__(self, consumer: Any, **kwargs: Any) -> None:
        super().__init__(consumer, **kwargs)
        around_reconnection(consumer, _patient)


def _patient(reconnect: Callable[[Exception], None]) -> Callable[[Exception], None]:
    def wait_and_reconnect(error: Exception) -> None:
        with warnings.catch_warnings():  # six lines each time about a setting that celeryconfig.py has decided
            warnings.simplefilter("ignore", CPendingDeprecationWarning)
            reconnect(error)
        wait_until_it_writes(error)

    return wait_and_reconnect


def wait_until_it_writes(error: Exception) -> None:
    """Return when Redis takes a write, or does not answer at all: then Celery's own waiting is right.

    One line at the beginning, one at the end.
    """
    named = Fleet.read().broker_url
    url = named.get_secret_value() if named else redis_url()
    if not isinstance(error, redis.RedisError):
        return
    refused_at: float | None = None
    try:
        client = connect(impatient(url, ANSWER_S))
        while (why := _refuses(client)) is not None:
            if refused_at is None:
                refused_at = time.monotonic()
                logger.error("waiting, crawlers continue: %s", explain(why, url))
            state.maybe_shutdown()  # raises when the worker has to end meanwhile
            time.sleep(LOOK_S)
    except TrawlError as wrong:
        logger.error("the broker cannot be asked: %s", wrong)
    if refused_at is not None:
        logger.warning("Redis accepts writes again, after %.0f s", time.monotonic() - refused_at)


def _refuses(client: redis.Redis) -> redis.RedisError | None:
    """Return the error with which a write is refused; None where it is accepted, or Redis is away."""
    try:
        client.set(FleetKeys().writable(), "1", px=PROBE_TTL_MS)
    except (redis.ResponseError, redis.AuthenticationError, redis.exceptions.BusyLoadingError) as error:
        return error
    except redis.RedisError:
        return None
    return None


_KOMBU = "kombu.transport.redis"
LOGGERS = (
    _KOMBU,
    "py.warnings",
    "celery.pool",
    "multiprocessing",
)  # `billiard` has the last name, which Celery replaces by the other
_REFUSED = re.compile(r"^[^\S\n]*redis\.exceptions\.\w+: (.*)$", re.MULTILINE)


def keep_short() -> None:
    """Call it in a worker."""
    for name in LOGGERS:
        logger = logging.getLogger(name)
        if in_one_line not in logger.filters:
            logger.addFilter(in_one_line)


def in_one_line(record: logging.LogRecord) -> bool:
    """Replace the traceback of such a record by one line; a filter of logging that drops nothing."""
    error = record.exc_info[1] if record.exc_info else None
    if isinstance(error, redis.RedisError):
        why = str(error)
    elif record.name == "py.warnings" and "outside body" in (text := record.getMessage()) and (found := _REFUSED.findall(text)):
        why = found[-1]
    else:
        return True
    what = record.getMessage() if record.name == _KOMBU else "a task's result is lost, Redis does not take it"
    record.msg, record.args = "%s: %s", (what, " ".join(why.rpartition("caused error: ")[2].split()))
    record.exc_info = record.exc_text = None
    return True


class Dispatcher(EventDispatcher):
    """Sends an event once."""

    def send(self, type: str, *, retry: bool = False, **options: Any) -> Any:  # noqa: ARG002 - as Celery calls it
        return super().send(type, retry=False, **options)


class Events(events.Events):
    """For `Celery(events=...)`."""

    dispatcher_cls = "tasks.refusing_broker:Dispatcher"
