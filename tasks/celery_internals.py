"""Celery's and kombu's internals that the fleet uses, by name: called, overridden or imitated.

`tests/contract/test_celery_internals.py` lists the functions, fails where the source of one has changed, and asserts the
assumptions about the others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from celery.backends.asynchronous import E_RETRY_LIMIT_EXCEEDED
from celery.worker import state


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
