"""A worker's steps as a node of the fleet: status file, heartbeat, the room for crawlers, the drain at its end. Also ends pool
processes that have lost their worker.

Each process of the pool asks the kernel to kill it when the worker's main process dies (PR_SET_PDEATHSIG), once it has begun. A
main process that is killed in between, as at the start of a busy machine, leaves children that nothing ends: each waits for
tasks from a pipe whose other end its siblings hold open.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from celery import bootsteps
from celery.signals import worker_shutdown
from click import ClickException

from redis_components.connection import connect
from redis_components.embedded import data_dir
from redis_components.errors import ConfigError, TrawlError
from redis_components.server.names import node_name
from workers.fleet.sizes import declared_fleet, default_fleet
from workers.logs.worker_log import never_wait
from workers.node.health import NodeHealth, StatusFile, folder_fault
from workers.node.heartbeat import MachineWatch, NodeBeat
from workers.node.host import NODE
from workers.process import forked
from workers.state.jobs import Jobs
from workers.state.nodes import NodeRecord, Nodes
from workers.state.registry import Registry

from .base import (
    CONTROL,
    EVERY_SERVICE,
    SERVICE_PREFIX,
    around_reconnection,
    celeryconfig,
    hosted,
    hosts_crawlers,
    instead_of_soft_shutdown,
    node_queue,
    pool_kind,
    services_of,
)

_main: set[int] = set()  # of the worker's main process, and of processes that are forked from it


def remember_main_process() -> None:
    """Call it in the main process, before the pool is made."""
    _main.clear()
    _main.add(os.getpid())


def end_as_orphan() -> None:
    """End this process if its parent died before the request to the kernel. Call it in a new pool process, after that request."""
    if _main and os.getppid() not in _main:
        os._exit(0)


TICK_S = 2.0


class HealthStep(bootsteps.StartStopStep):
    """Step of the worker: writes the status file until the worker ends."""

    def __init__(self, worker: Any, **kwargs: Any) -> None:
        super().__init__(worker, **kwargs)
        worker.node_health = NodeHealth(
            StatusFile("worker"),
            data_dir(),
            hosted=lambda: hosted("trawl.run_crawler"),
        )

    def start(self, worker: Any) -> None:
        worker.node_health.start()

    def stop(self, worker: Any) -> None:
        worker.node_health.stop()

    def terminate(self, worker: Any) -> None:
        worker.node_health.stop()


class LoopStep(bootsteps.StartStopStep):
    """Step of the consumer, which is stopped and started at each reconnection: ticks while the worker's event loop runs."""

    requires = ("celery.worker.consumer:Connection",)

    def __init__(self, consumer: Any, **kwargs: Any) -> None:
        super().__init__(consumer, **kwargs)
        self._health: NodeHealth = consumer.controller.node_health
        self._ticking: Any = None
        around_reconnection(consumer, self._without_broker)

    def start(self, consumer: Any) -> None:
        self._health.connected(True)
        self._ticking = consumer.timer.call_repeatedly(TICK_S, self._health.tick)

    def stop(self, consumer: Any) -> None:  # noqa: ARG002 - the form of a step
        self._health.connected(False)
        if self._ticking is not None:
            self._ticking.cancel()
            self._ticking = None

    def _without_broker(self, reconnect: Callable[[Exception], None]) -> Callable[[Exception], None]:
        def wait(error: Exception) -> None:
            self._health.connected(False)  # no tick comes while it waits
            reconnect(error)

        return wait


logger = logging.getLogger(__name__)


class NodeStep(bootsteps.StartStopStep):
    """Sets up `workers.node.host.NODE` before the pool is forked, and its drain flag however the worker ends. Its threads begin
    behind the forks: the lock of a module that a thread imports just then stays locked in the new process.
    """

    requires = ("celery.worker.components:Pool",)

    def __init__(self, worker: Any, **kwargs: Any) -> None:
        super().__init__(worker, **kwargs)
        queues = worker.app.amqp.queues
        named = set(queues.consume_from)
        try:
            node_name(worker.hostname)
            check_pool(pool_kind(worker), worker.concurrency, named)
        except TrawlError as error:
            raise ClickException(str(error)) from error  # Celery's command line shows it as one line, exit code 1
        forked.owned_by(os.getpid())
        NODE.crawlers = room_for_crawlers(worker.concurrency, named)
        NODE.once = room_for_small_crawls(worker.concurrency, named)
        NODE.consumers = room_for_consumers(worker.concurrency, named)
        if hosts_crawlers(named):
            queues.select_add(node_queue(worker.hostname))
        NODE.any_service = EVERY_SERVICE in named
        if NODE.any_service:
            for service in default_fleet().keys() - {*services_of(named)}:
                queues.select_add(f"{SERVICE_PREFIX}{service}")
        self._beat: NodeBeat | None = None

    def start(self, worker: Any) -> None:
        NODE.drain.clear()
        machine = MachineWatch(worker.hostname)
        machine.start()
        worker_shutdown.connect(lambda **_: machine.stop(), weak=False)
        if hosts_crawlers(worker.app.amqp.queues.consume_from):
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
    """Return the services whose queues it consumes, and their jobs; of a worker without -Q, or with `-Q crawlers`, all that were
    declared since its start.
    """
    queues = worker.app.amqp.queues.consume_from
    named = services_of(queues)
    if EVERY_SERVICE in queues:
        return tuple(sorted({*named, *declared_fleet(connect())}))
    return tuple(sorted({*named, *(name for name, job in Jobs(connect()).open().items() if job.service in named)}))


def check_pool(pool: str, processes: int, queues: set[str]) -> None:
    """Raise ConfigError for a worker that one crawler would occupy, so that it would do nothing else."""
    if not hosts_crawlers(queues):
        return
    if pool == "solo":
        raise ConfigError(
            "--pool solo: a crawler would keep its only thread, and SIGTERM would do nothing; leave --pool out, or take threads"
        )
    if processes < 2 and CONTROL in queues:
        raise ConfigError(
            f"--concurrency {processes}: a crawler would keep its only process, and nothing would seed, store and care for the "
            "fleet; take 2 or more, or let it serve one of both: -Q control, or -Q crawlers"
        )


def room_for_crawlers(processes: int, queues: set[str]) -> int:
    """Return the number of crawlers for a pool of that size: some processes are kept for tasks that last seconds, if it serves
    those.
    """
    reserved: int = celeryconfig.RESERVED_PROCESSES if CONTROL in queues else 0
    return max(1, processes - reserved)


def room_for_consumers(processes: int, queues: set[str]) -> int:
    """Return 1 where a pool of that size has a process for `consume_items`, and another one for tasks that last seconds."""
    crawlers = room_for_crawlers(processes, queues) if hosts_crawlers(queues) else 0
    return int(processes - crawlers >= 2)


def room_for_small_crawls(processes: int, queues: set[str]) -> int:
    """Return the number of `crawl_once` that may run at one time: the rest of crawlers and the fleet's own tasks, at
    least one.
    """
    if CONTROL not in queues:
        return processes
    crawlers = room_for_crawlers(processes, queues) if hosts_crawlers(queues) else 0
    fleet_tasks: int = celeryconfig.FLEET_TASKS
    return max(1, processes - crawlers - fleet_tasks)


def drain(worker: Any) -> None:
    """End all crawlers of this node gracefully, and wait until they have gone, at most `worker_soft_shutdown_timeout`."""
    NODE.drain.set()
    rooms = [NODE.room(worker.hostname, of) for of in ("", "once", "consumers")]
    deadline = time.monotonic() + worker.app.conf.worker_soft_shutdown_timeout
    while (left := sum(room.taken() for room in rooms)) and time.monotonic() < deadline:
        time.sleep(0.1)
    if left:
        logger.warning("%d crawls or consumers did not end in time", left)
