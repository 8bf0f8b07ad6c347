"""Crawlers in Flower: with their figures, and without the fleet's own maintenance.

Each event of a crawler names its task and arguments, so a Flower that was started last knows them within 2 s. The fleet's own
tasks from beat, some two a second, send no events (`tasks.guard.worker.strategy`): crawlers would drown in them.
"""

from __future__ import annotations

import ipaddress
import logging
import time
from collections.abc import Callable
from typing import Any

import redis
from kombu.exceptions import OperationalError

from redis_components.errors import ConfigError
from workers.state.registry import CrawlerRecord

logger = logging.getLogger(__name__)


class CrawlingEvents:
    """Sends a task's own events. Flower makes a state of their name: `task-crawling` is CRAWLING.

    The task's name is read here, in its own thread: the records come from a thread in which Celery has no current task.
    """

    def __init__(self, task: Any) -> None:
        self._dispatcher: Callable[..., Any] = task.app.events.default_dispatcher
        request, began = task.request, time.time()
        self._hostname = request.hostname
        self._known = {
            "uuid": request.id,
            "name": task.name,
            "args": repr(tuple(request.args or ())),
            "kwargs": repr(dict(request.kwargs or {})),
            "received": began,
            "started": began,
        }

    def crawling(self, record: CrawlerRecord) -> None:
        self._send("task-crawling", result=figures(record))

    def stopped(self) -> None:
        """Send the last event: a state that Celery does not know outlives REVOKED in Flower."""
        self._send("task-stopped")

    def _send(self, event: str, **fields: str) -> None:
        try:
            with self._dispatcher(hostname=self._hostname) as dispatcher:
                dispatcher.send(event, retry=False, **self._known, **fields)
        except (OperationalError, redis.RedisError, OSError) as error:  # no crawl depends on it
            logger.debug("no event %s: %s", event, error)


def figures(record: CrawlerRecord) -> str:
    """Format `running, 45.0 pages/s, 1234 pages, 8 in flight, 120 MiB, pid 4711`; for a crawler that waits for a restart, the
    reason.
    """
    if not record.state.has_process:
        return f"{record.state}, {record.note or record.last_exit}"
    return (
        f"{record.state}, {record.pages_per_s} pages/s, {record.pages} pages, {record.in_flight} in flight, "
        f"{record.rss_bytes >> 20} MiB, pid {record.pid}"
    )


def refuse_open_flower(address: str, unix_socket: str, *, asks_for_login: bool) -> None:
    """Raise ConfigError where anybody on the network could open Flower: its pages can stop workers."""
    if asks_for_login or unix_socket or _is_loopback(address):
        return
    where = f"on {address}" if address else "on every address of this machine"
    raise ConfigError(
        f"Flower would listen {where} without a password, and its pages can stop workers: set FLOWER_BASIC_AUTH=user:password "
        "(--basic-auth), or listen on this machine alone with --address=127.0.0.1"
    )


def check_flower(arguments: list[str]) -> None:
    """Refuse an open Flower: `arguments` are those behind `flower` on the command line. Raises ConfigError."""
    from flower.command import apply_env_options, apply_options
    from tornado.options import options

    apply_env_options()  # as the command does it after this, in the same order
    apply_options("flower", arguments)
    refuse_open_flower(options.address, options.unix_socket, asks_for_login=bool(options.basic_auth or options.auth))


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"
