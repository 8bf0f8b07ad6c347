"""What a worker's main process does for the crawlers that its pool hosts: tell them how many may be, and when to go; and the
fleet that this node is there.

A step of the *worker*: steps of the consumer are stopped and started at each reconnection to the broker.
"""

from __future__ import annotations

import logging
import time
from functools import partial
from typing import Any

from celery import bootsteps
from celery.signals import worker_shutdown
from celery.worker import state
from click import ClickException

from redis_components.connection import connect
from redis_components.errors import ConfigError
from redis_components.nodes import NodeRecord, Nodes
from redis_components.registry import Registry
from workers.node import NODE
from workers.node_beat import NodeBeat
from workers.patient_log import never_wait

from .routing import CONTROL, node_queue, services_of

logger = logging.getLogger(__name__)


class NodeStep(bootsteps.StartStopStep):
    """Sets up `workers.node.NODE` before the pool is forked, and its drain flag however the worker ends."""

    requires = ("celery.worker.components:Pool",)

    def __init__(self, worker: Any, **kwargs: Any) -> None:
        super().__init__(worker, **kwargs)
        queues = worker.app.amqp.queues
        named = set(queues.consume_from)
        try:
            check_pool(worker.pool_cls.__module__.rpartition(".")[2], worker.concurrency, named)
        except ConfigError as error:
            raise ClickException(str(error)) from error  # Celery's command line shows it as one line, exit code 1
        NODE.crawlers = room_for_crawlers(worker.concurrency, named)
        NODE.once = room_for_small_crawls(worker.concurrency, named)
        if services_of([*named]):
            queues.select_add(node_queue(worker.hostname))
        self._beat: NodeBeat | None = None

    def start(self, worker: Any) -> None:
        NODE.drain.clear()
        if services_of([*worker.app.amqp.queues.consume_from]):
            client = connect()
            registry = Registry(client)
            report = partial(registry.report_error, worker.hostname)
            self._beat = NodeBeat(
                Nodes(client), lambda: look(worker), before=NODE.room(worker.hostname).end_strays, report=report
            )
            self._beat.start()
            # The step itself is stopped before the pool; a node is gone when its crawlers are.
            worker_shutdown.connect(self._say_goodbye, weak=False)
        if not worker.pool_cls.__module__.endswith(".prefork"):  # supervisors are threads of this process then
            never_wait()
        # SIGQUIT: Celery sleeps here for the whole of worker_soft_shutdown_timeout, in its signal handler, and nobody tells the
        # crawlers. There is no hook for it.
        worker.wait_for_soft_shutdown = lambda: drain(worker)

    def close(self, worker: Any) -> None:  # noqa: ARG002 - the form of a step
        """SIGTERM, SIGQUIT, Ctrl-C, or an error that the worker cannot survive."""
        NODE.drain.set()
        if self._beat:
            self._beat.now()

    def terminate(self, worker: Any) -> None:  # noqa: ARG002 - the form of a step
        """The pool is killed next."""
        self._say_goodbye()

    def _say_goodbye(self, **_: Any) -> None:
        if self._beat:
            self._beat.stop()


def look(worker: Any) -> NodeRecord:
    """What this node is at the moment."""
    # A message is here from its receipt to the end of its task; a list of a dict's values is made in one piece.
    hosted = sum(request.name == "trawl.run_crawler" for request in list(state.requests.values()))
    return NodeRecord(
        name=worker.hostname,
        services=services_of([*worker.app.amqp.queues.consume_from]),
        capacity=NODE.crawlers,
        taken=hosted,
        draining=NODE.drain.is_set(),
    )


def check_pool(pool: str, processes: int, queues: set[str]) -> None:
    """Raise ConfigError for a worker that a crawler would take whole, so that it would hear and do nothing else."""
    if not services_of([*queues]):
        return
    if pool == "solo":
        raise ConfigError(
            "--pool solo: a crawler would keep its only thread, and nobody would hear SIGTERM; leave --pool out, or take threads"
        )
    if processes < 2 and CONTROL in queues:
        raise ConfigError(
            f"--concurrency {processes}: a crawler would keep its only process, and nobody would seed, store and care for the "
            "fleet; take 2 or more, or let it serve one of both: -Q control, or -Q crawlers.SERVICE"
        )


def room_for_crawlers(processes: int, queues: set[str]) -> int:
    """How many crawlers a pool of that size may host: some processes are kept for tasks that last seconds, if it serves those."""
    from celeryconfig import RESERVED_PROCESSES

    reserved = RESERVED_PROCESSES if CONTROL in queues else 0
    return max(1, processes - reserved)


def room_for_small_crawls(processes: int, queues: set[str]) -> int:
    """How many `crawl_once` may run at one time: what crawlers and the fleet's own tasks leave over, at least one."""
    if CONTROL not in queues:
        return processes
    from celeryconfig import FLEET_TASKS

    crawlers = room_for_crawlers(processes, queues) if services_of([*queues]) else 0
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
