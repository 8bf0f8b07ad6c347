"""The worker bootstep of a node: limits the crawlers of the pool, drains them at shutdown, and sends the node's heartbeat.

A step of the *worker*: steps of the consumer are stopped and started at each reconnection to the broker.
"""

from __future__ import annotations

import logging
import time
from functools import partial
from typing import Any

from celery import bootsteps
from celery.signals import worker_shutdown
from click import ClickException

from redis_components.connection import connect
from redis_components.embedded import data_dir
from redis_components.errors import ConfigError, TrawlError
from redis_components.fleet.jobs import Jobs
from redis_components.fleet.nodes import NodeRecord, Nodes
from redis_components.fleet.registry import Registry
from redis_components.names import node_name
from workers.fleet.sizes import declared_fleet, default_fleet
from workers.logs.nonblocking import never_wait
from workers.node.health import folder_fault
from workers.node.heartbeat import NodeBeat
from workers.node.host import NODE

from .celery_internals import check_internals, hosted, instead_of_soft_shutdown, pool_kind
from .fleet_settings import celeryconfig
from .routing import CONTROL, SERVICE_PREFIX, node_queue, services_of

logger = logging.getLogger(__name__)


class NodeStep(bootsteps.StartStopStep):
    """Sets up `workers.node.host.NODE` before the pool is forked, and its drain flag however the worker ends."""

    requires = ("celery.worker.components:Pool",)

    def __init__(self, worker: Any, **kwargs: Any) -> None:
        super().__init__(worker, **kwargs)
        queues = worker.app.amqp.queues
        named = set(queues.consume_from)
        try:
            check_internals()
            node_name(worker.hostname)
            check_pool(pool_kind(worker), worker.concurrency, named)
        except TrawlError as error:
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
            room = NODE.room(worker.hostname)

            self._beat = NodeBeat(Nodes(client), lambda: node_record(worker), before=room.end_strays, report=report)
            self._beat.start()
            worker.node_health.beat_at = self._beat.turned_at
            # The step itself is stopped before the pool; a node is gone when its crawlers are.
            worker_shutdown.connect(self._leave, weak=False)
        if pool_kind(worker) != "prefork":  # supervisors are threads of this process then
            never_wait()
        instead_of_soft_shutdown(worker, lambda: drain(worker))  # else the crawlers would get no order

    def close(self, worker: Any) -> None:  # noqa: ARG002 - the form of a step
        """Leave at SIGTERM, SIGQUIT, Ctrl-C, or an error that the worker cannot survive."""
        NODE.drain.set()
        if self._beat:
            self._beat.now()

    def terminate(self, worker: Any) -> None:  # noqa: ARG002 - the form of a step
        """Record the node's end: the pool is killed next."""
        self._leave()

    def _leave(self, **_: Any) -> None:
        if self._beat:
            self._beat.stop()


def node_record(worker: Any) -> NodeRecord:
    """Return the present record of this node."""
    return NodeRecord(
        name=worker.hostname,
        services=served(worker),
        capacity=0 if folder_fault(data_dir()) else NODE.crawlers,  # no launch is sent where crawlers cannot write
        taken=hosted("trawl.run_crawler"),
        draining=NODE.drain.is_set(),
    )


def served(worker: Any) -> tuple[str, ...]:
    """Return the services whose queues it consumes, and their jobs; of a worker without -Q all that were declared since its
    start.
    """
    queues = services_of([*worker.app.amqp.queues.consume_from])
    if {f"{SERVICE_PREFIX}{service}" for service in default_fleet()} - set(worker.app.amqp.queues.consume_from):
        return tuple(
            sorted({*queues, *(name for name, job in Jobs(connect()).open().items() if job.service in queues)})
        )  # with -Q
    return tuple(sorted({*queues, *declared_fleet(connect())}))


def check_pool(pool: str, processes: int, queues: set[str]) -> None:
    """Raise ConfigError for a worker that one crawler would occupy, so that it would do nothing else."""
    if not services_of([*queues]):
        return
    if pool == "solo":
        raise ConfigError(
            "--pool solo: a crawler would keep its only thread, and SIGTERM would do nothing; leave --pool out, or take threads"
        )
    if processes < 2 and CONTROL in queues:
        raise ConfigError(
            f"--concurrency {processes}: a crawler would keep its only process, and nothing would seed, store and care for the "
            "fleet; take 2 or more, or let it serve one of both: -Q control, or -Q crawlers.SERVICE"
        )


def room_for_crawlers(processes: int, queues: set[str]) -> int:
    """Return the number of crawlers for a pool of that size: some processes are kept for tasks that last seconds, if it serves
    those.
    """
    reserved: int = celeryconfig.RESERVED_PROCESSES if CONTROL in queues else 0
    return max(1, processes - reserved)


def room_for_small_crawls(processes: int, queues: set[str]) -> int:
    """Return the number of `crawl_once` that may run at one time: the rest of crawlers and the fleet's own tasks, at
    least one.
    """
    if CONTROL not in queues:
        return processes
    crawlers = room_for_crawlers(processes, queues) if services_of([*queues]) else 0
    fleet_tasks: int = celeryconfig.FLEET_TASKS
    return max(1, processes - crawlers - fleet_tasks)


def drain(worker: Any) -> None:
    """End all crawlers of this node gracefully, and wait until they have gone, at most `worker_soft_shutdown_timeout`."""
    NODE.drain.set()
    rooms = (NODE.room(worker.hostname), NODE.once_room(worker.hostname))
    deadline = time.monotonic() + worker.app.conf.worker_soft_shutdown_timeout
    while (left := sum(room.taken() for room in rooms)) and time.monotonic() < deadline:
        time.sleep(0.1)
    if left:
        logger.warning("%d crawls did not end in time", left)
