"""Celery's worker with the guard of `transport.py`: validates each message before Celery runs it, and sets invalid ones aside."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import redis
from celery.app.control import Control as CeleryControl
from celery.app.control import Mailbox as CeleryMailbox
from celery.worker import state
from celery.worker.consumer import Consumer as CeleryConsumer
from celery.worker.request import Request as CeleryRequest
from celery.worker.strategy import default as celerys_strategy
from kombu import pidbox
from kombu.exceptions import OperationalError

from redis_components.errors import TrawlError
from tasks.base import is_maintenance, note_remote, release_place

from .signed_messages import ReceivedCommands, SigningMailbox, fault_of_command, fault_of_signature, fault_of_task
from .transport import one_line, set_aside

logger = logging.getLogger(__name__)


# remote control


class Node(pidbox.Node):
    """A worker's mailbox for remote control."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[no-untyped-call]
        self._received = ReceivedCommands()

    def handle_message(self, body: Any, message: Any = None) -> Any:
        headers = message.headers if message else {}
        if fault := fault_of_command(body, headers) or self._received.fault(body, headers):
            logger.error("a command of remote control was ignored: it %s", fault)
            return None
        return super().handle_message(body, message)  # type: ignore[no-untyped-call]

    def dispatch(self, method: str, arguments: Any = None, *args: Any, **kwargs: Any) -> Any:
        note_remote(str(self.hostname), method, arguments)
        return super().dispatch(method, arguments, *args, **kwargs)  # type: ignore[no-untyped-call]


class Mailbox(SigningMailbox, CeleryMailbox):
    node_cls = Node


class Control(CeleryControl):
    Mailbox = Mailbox


# the worker


class OutOfMemory(TrawlError):
    """A task needed more memory than there was."""


class Request(CeleryRequest):
    """A task at work, seen from the worker's main process."""

    def on_failure(self, exc_info: Any, send_failed_event: bool = True, return_ok: bool = False) -> Any:
        # Celery raises it again in the main process, which ends the worker with all its crawlers.
        if isinstance(getattr(exc_info.exception, "exc", exc_info.exception), MemoryError):
            exc_info.exception = OutOfMemory(f"{self.name} ran out of memory")
        return super().on_failure(exc_info, send_failed_event, return_ok)


class Consumer(CeleryConsumer):
    """Reads tasks from the broker."""

    def create_task_handler(self, *args: Any, **kwargs: Any) -> Callable[[Any], Any]:
        handle = super().create_task_handler(*args, **kwargs)
        about_the_broker = (*self.connection_errors, redis.RedisError, OperationalError, OSError)

        def on_task_received(message: Any) -> Any:
            try:
                fault = fault_of_signature(message, _queue_of(message)) or fault_of_task(message.headers, message.payload)
            except Exception as error:
                fault = f"cannot be decoded: {one_line(error)}"
            if fault:
                return self._set_aside(message, fault)
            try:
                return handle(message)
            except about_the_broker:
                raise
            except Exception as error:
                logger.exception("a message could not be run")
                self._give_up(message)
                return self._set_aside(message, f"made Celery fail: {one_line(error)}")

        return on_task_received

    def on_decode_error(self, message: Any, exc: Exception) -> None:
        self._set_aside(message, f"cannot be decoded: {one_line(exc)}")

    def on_unknown_message(self, body: Any, message: Any) -> None:  # noqa: ARG002 - Celery's form
        self._set_aside(message, "names no task")

    def on_invalid_task(self, body: Any, message: Any, exc: Exception) -> None:  # noqa: ARG002
        self._set_aside(message, f"is not a task: {one_line(exc)}")

    def on_unknown_task(self, body: Any, message: Any, exc: Exception) -> None:
        self._keep(message, f"names the task {message.headers.get('task')!r}, which this worker does not have")
        super().on_unknown_task(body, message, exc)  # fails the task for a client that waits for its result

    def _set_aside(self, message: Any, reason: str) -> None:
        self._keep(message, reason)
        if not message.acknowledged:
            message.reject()

    def _keep(self, message: Any, reason: str) -> None:
        if message.channel.delivering is None:
            logger.error("a broadcast was ignored: it %s", reason)
            return
        queue, raw = message.channel.delivering
        set_aside(raw, queue=queue, reason=reason)

    def _give_up(self, message: Any) -> None:
        """Forget a request that was counted as taken when it failed."""
        request = state.requests.get(message.headers["id"])
        if request is not None and request.message is message:
            state.task_ready(request)
            release_place(self.controller)


def _queue_of(message: Any) -> str:
    """Return the queue in which a message lay. By Redis, not by the message: that may have been written for another queue."""
    return str(message.channel.delivering[0])


# events


class _WithoutEvents:
    """A worker's consumer whose tasks send no events."""

    event_dispatcher = None

    def __init__(self, consumer: Any) -> None:
        self._consumer = consumer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._consumer, name)


def strategy(task: Any, app: Any, consumer: Any, **options: Any) -> Callable[..., Any]:
    """Return Celery's own strategy for each message, without events and a line for maintenance. `Task.Strategy` names this
    function.
    """
    loud = celerys_strategy(task, app, consumer, **options)
    # Without a line: beat sends some of these tasks each second, and they would be all of a node's log.
    quiet = celerys_strategy(task, app, _WithoutEvents(consumer), info=lambda *_, **__: None, **options)

    def handle(message: Any, *args: Any, **kwargs: Any) -> Any:
        return (quiet if is_maintenance(task.name, message.headers) else loud)(message, *args, **kwargs)

    return handle
