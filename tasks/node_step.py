"""What a worker's main process does for the crawlers that its pool hosts: tell them how many may be, and when to go.

A step of the *worker*: steps of the consumer are stopped and started at each reconnection to the broker.
"""

from __future__ import annotations

import logging
import time
from typing import Any

from celery import bootsteps

from workers.node import NODE
from workers.patient_log import never_wait

logger = logging.getLogger(__name__)


class NodeStep(bootsteps.StartStopStep):
    """Sets up `workers.node.NODE` before the pool is forked, and its drain flag however the worker ends."""

    requires = ("celery.worker.components:Pool",)

    def __init__(self, worker: Any, **kwargs: Any) -> None:
        super().__init__(worker, **kwargs)
        queues = set(worker.app.amqp.queues.consume_from)
        NODE.crawlers = room_for_crawlers(worker.concurrency, queues)
        NODE.once = room_for_small_crawls(worker.concurrency, queues)

    def start(self, worker: Any) -> None:
        NODE.drain.clear()
        if not worker.pool_cls.__module__.endswith(".prefork"):  # supervisors are threads of this process then
            never_wait()
        # SIGQUIT: Celery sleeps here for the whole of worker_soft_shutdown_timeout, in its signal handler, and nobody tells the
        # crawlers. There is no hook for it.
        worker.wait_for_soft_shutdown = lambda: drain(worker)

    def close(self, worker: Any) -> None:  # noqa: ARG002 - the form of a step
        """SIGTERM, SIGQUIT, Ctrl-C, or an error that the worker cannot survive."""
        NODE.drain.set()


def room_for_crawlers(processes: int, queues: set[str]) -> int:
    """How many crawlers a pool of that size may host: some processes are kept for tasks that last seconds, if it serves those."""
    from celeryconfig import RESERVED_PROCESSES

    reserved = RESERVED_PROCESSES if "control" in queues else 0
    return max(1, processes - reserved)


def room_for_small_crawls(processes: int, queues: set[str]) -> int:
    """How many `crawl_once` may run at one time: what crawlers and the fleet's own tasks leave over, at least one."""
    if "control" not in queues:
        return processes
    from celeryconfig import FLEET_TASKS

    crawlers = room_for_crawlers(processes, queues) if any(queue.startswith("crawlers.") for queue in queues) else 0
    return max(1, processes - crawlers - FLEET_TASKS)


def drain(worker: Any) -> None:
    """End all crawlers of this node gracefully, and wait until they have gone, at most `worker_soft_shutdown_timeout`."""
    NODE.drain.set()
    rooms = (NODE.room(worker.hostname), NODE.once_room(worker.hostname))
    deadline = time.monotonic() + worker.app.conf.worker_soft_shutdown_timeout
    while (left := sum(room.taken() for room in rooms)) and time.monotonic() < deadline:
        time.sleep(0.1)
    if left:
        logger.warning("%d crawls did not end in time", left)
