"""What Flower shows of a crawler: its task's state CRAWLING, with figures."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import redis
from kombu.exceptions import OperationalError

from redis_components.registry import CrawlerRecord

logger = logging.getLogger(__name__)


class CrawlingEvents:
    """Sends a task's own events. Flower makes a state of their name: `task-crawling` is CRAWLING.

    The task's id is taken here, in its own thread: the records come from another one, where Celery knows no current task.
    """

    def __init__(self, task: Any) -> None:
        self._dispatcher: Callable[..., Any] = task.app.events.default_dispatcher
        self._hostname = task.request.hostname
        self._id = task.request.id

    def crawling(self, record: CrawlerRecord) -> None:
        self._send("task-crawling", result=figures(record))

    def stopped(self) -> None:
        """Has to be the last: a state of our own outlives REVOKED in Flower."""
        self._send("task-stopped")

    def _send(self, event: str, **fields: str) -> None:
        try:
            with self._dispatcher(hostname=self._hostname) as dispatcher:
                dispatcher.send(event, uuid=self._id, retry=False, **fields)
        except (OperationalError, redis.RedisError, OSError) as error:  # nobody's crawl depends on it
            logger.debug("no event %s: %s", event, error)


def figures(record: CrawlerRecord) -> str:
    """`forum_list/0 pid 4711: running, 1234 pages, 45.0/s, 8 in flight, 120 MiB`; of one that waits for a restart why it does."""
    if not record.state.has_process:
        return f"{record.name}: {record.state}, {record.note or record.last_exit}"
    return (
        f"{record.name} pid {record.pid}: {record.state}, {record.pages} pages, {record.pages_per_s}/s, "
        f"{record.in_flight} in flight, {record.rss_bytes >> 20} MiB"
    )
