"""A worker's own events (its heartbeat for Flower), sent without waiting for the broker.

Celery sends the heartbeat from the worker's event loop and tries again until the broker is back, for up to 30 s at a time. A
worker whose heartbeat was due in the moment in which Redis went away stood still in there: it neither noticed the lost
connection nor took a task (one outage in fifty). Here an event that cannot be sent is kept by the dispatcher, which sends it
after the reconnection.
"""

from __future__ import annotations

from typing import Any

from celery.app import events
from celery.events.dispatcher import EventDispatcher


class Dispatcher(EventDispatcher):
    """Sends an event once."""

    def send(self, type: str, *, retry: bool = False, **options: Any) -> Any:  # noqa: ARG002 - as Celery calls it
        return super().send(type, retry=False, **options)


class Events(events.Events):
    """For `Celery(events=...)`."""

    dispatcher_cls = "tasks.worker_events:Dispatcher"
