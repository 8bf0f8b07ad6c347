"""Celery's and kombu's internals that the fleet uses, by name: called, overridden or imitated. A worker refuses to start where
one is missing; `tests/contract/test_celery_internals.py` fails where the source of one has changed, and asserts the assumptions
about the others.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from operator import attrgetter
from typing import Any

from celery.backends.asynchronous import E_RETRY_LIMIT_EXCEEDED
from celery.worker import state

from redis_components.errors import IncompatibleEngine

RELIES_ON = {
    "kombu.transport.redis:Channel._brpop_read": "86494f0bf4af",
    "kombu.transport.redis:Channel._receive_one": "b2523c2f6e6e",
    "kombu.transport.redis:Channel._deliver_fanout_message": "d4187f4c61cc",
    "kombu.transport.redis:Channel._flush_brpop_reauth": "aaf8e7eb0ef4",
    "kombu.transport.redis:Channel._restore": "fea4e916763a",
    "kombu.transport.redis:Channel.get_table": "72dc9bf3074c",
    "kombu.transport.virtual.base:Channel._restore": "524530d090a0",
    "kombu.transport.virtual.base:Channel.basic_consume": "7de5ff6da7c1",
    "kombu.transport.virtual.base:Message.__init__": "4d82dad58ffe",
    "kombu.transport.virtual.base:Transport._deliver": "fb2afc873504",
    "kombu.connection:Connection.get_transport_cls": "ad88ed36b363",
    "kombu.connection:Connection._info": "f20a54ce04d0",
    "kombu.connection:Connection.Pool": "d5369eb1afe9",
    "kombu.connection:ConnectionPool.new": "9e7acbed0a89",
    "kombu.messaging:Consumer._receive_callback": "8854817b41cb",
    "kombu.pidbox:Node.handle_message": "70eeb4fd7aec",
    "kombu.pidbox:Node.dispatch": "571a562c8bb3",
    "kombu.pidbox:Mailbox.producer_or_acquire": "989ece099d30",
    "kombu.pidbox:Mailbox._publish": "e051f8d8022c",
    "celery.worker.pidbox:Pidbox.on_message": "334d04759317",
    "celery.worker.consumer:Consumer.create_task_handler": "af9fb2205efa 68a73894ead8",
    "celery.worker.consumer:Consumer.on_decode_error": "f069c74c53a0",
    "celery.worker.consumer:Consumer.on_unknown_message": "ef7095171e20",
    "celery.worker.consumer:Consumer.on_unknown_task": "742a6eac2db9",
    "celery.worker.consumer:Consumer.on_invalid_task": "fe7b892b7b14",
    "celery.worker.request:Request.__init__": "3f014fd57c98",
    "celery.worker.request:Request.on_failure": "4d6432da018e 9db11eea7568",
    "celery.worker.consumer:Consumer.on_connection_error_after_connected": "a1feb13e4a2d e7544a8c7b20",
    "celery.worker.worker:WorkController.wait_for_soft_shutdown": "a080e848cf94",
    "celery.worker.components:Pool.create": "1bf3c6fb29b3 28d93dc27012",
    "celery.backends.asynchronous:BaseResultConsumer.drain_events_until": "f476c17c27ad",
    "celery.beat:Scheduler.setup_schedule": "b77356c45b67",
    "celery.beat:Scheduler.tick": "4b3b53f52662 32a2f4759803",
    "celery.beat:Scheduler.close": "ba886b6fd755 d841c0f05efb",
    "celery.worker.state:task_ready": "3648b78f40f8 242d12f27f06",
    "celery.worker.strategy:default": "0f2ade5e960b ec8fc307c7e7",
}
"""`module:name` -> the beginnings of its source's SHA-1 in the versions that were read (Celery 5.6.3 and 5.7.0, kombu 5.7.0)."""


def function_of(name: str) -> Callable[..., Any]:
    """Return the function that RELIES_ON names. Raises AttributeError or ImportError where it is gone."""
    module, _, path = name.partition(":")
    found: Callable[..., Any] = attrgetter(path)(import_module(module))
    return found


def check_internals() -> None:
    """Raise IncompatibleEngine where Celery or kombu lacks one of them: a worker without its guard must not run."""
    for name in RELIES_ON:
        try:
            function_of(name)
        except (AttributeError, ImportError) as error:
            raise IncompatibleEngine(
                f"{name} is gone, which the fleet uses: install the Celery and kombu that constraints.txt names"
            ) from error


def hosted(task: str) -> int:
    """Return the number of tasks of that name that this worker has taken and not finished."""
    # A list of a dict's values is made in one piece: other threads change it.
    return sum(request.name == task for request in list(state.requests.values()))


def pool_kind(worker: Any) -> str:
    """Return `prefork`, `threads`, `solo`, ..."""
    return str(worker.pool_cls.__module__.rpartition(".")[2])


def instead_of_soft_shutdown(worker: Any, call: Callable[[], None]) -> None:
    """Call `call` at SIGQUIT. Celery has no hook there; it sleeps for the whole of worker_soft_shutdown_timeout, in its signal
    handler.
    """
    worker.wait_for_soft_shutdown = call


def around_reconnection(consumer: Any, wrap: Callable[[Callable[[Exception], None]], Callable[[Exception], None]]) -> None:
    """Replace what a consumer does when its connection to the broker was lost."""
    consumer.on_connection_error_after_connected = wrap(consumer.on_connection_error_after_connected)


def release_place(controller: Any) -> None:
    """Give back the place in the pool of a task that was taken and is not run."""
    if controller.semaphore is not None:
        controller._quick_release()


def gave_up_on_results(error: RuntimeError) -> bool:
    """Return True if Celery's Redis backend has given up reconnecting."""
    return bool(str(error).strip() == E_RETRY_LIMIT_EXCEEDED.strip())
