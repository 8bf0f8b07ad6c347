"""A worker's status file: what Celery knows of its worker, for `workers.node.health`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from celery import bootsteps

from redis_components.embedded import data_dir
from workers.node.health import NodeHealth
from workers.node.host import NODE
from workers.node.machine import MachineWatch
from workers.process.status_file import StatusFile

from .celery_internals import around_reconnection, hosted

TICK_S = 2.0


class HealthStep(bootsteps.StartStopStep):
    """Step of the worker: writes the status file, and reports the faults of its machine, from before the pool is made until the
    worker ends.
    """

    def __init__(self, worker: Any, **kwargs: Any) -> None:
        super().__init__(worker, **kwargs)
        worker.node_health = NodeHealth(
            StatusFile("worker"),
            data_dir(),
            failed_starts=NODE.failed_starts,
            hosted=lambda: hosted("trawl.run_crawler"),
        )

    def start(self, worker: Any) -> None:
        worker.node_health.start()
        self._machine = MachineWatch(worker.hostname)
        self._machine.start()

    def stop(self, worker: Any) -> None:
        self._machine.stop()
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
