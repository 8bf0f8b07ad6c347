"""Celery's worker with the guard of `transport.py`: validates each message before Celery runs it, and sets invalid ones aside.

Celery reads the fields of a message in the worker's main process and trusts them: a time limit that is text ends the worker.
Fields that no code reads may hold anything.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import redis
from celery.app.control import Control as CeleryControl
from celery.app.control import Mailbox as CeleryMailbox
from celery.app.task import Context
from celery.utils.time import maybe_iso8601
from celery.worker import state
from celery.worker.consumer import Consumer as CeleryConsumer
from celery.worker.request import Request as CeleryRequest
from celery.worker.strategy import default as celerys_strategy
from kombu import pidbox
from kombu.exceptions import OperationalError

from redis_components.errors import TrawlError
from redis_components.server.signing import signing_is_on
from tasks.base import is_maintenance, note_remote, release_place

from .signed_messages import ReceivedCommands, SigningMailbox, fault_of_signature
from .transport import (
    NAME,
    TEXT,
    Check,
    fault_of_fields,
    is_clock,
    is_name,
    is_whole,
    kind_of,
    maybe,
    of_type,
    one_line,
    set_aside,
    shown,
)

logger = logging.getLogger(__name__)


# valid tasks and commands

LONGEST_S = 10 * 366 * 86400
"""Seconds of a time limit."""
_YEARS = range(1970, 3000)
_MOST_RETRIES = 1_000_000
_MOST_PROCESSES = 1000


def _is_seconds(value: object) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return value is None or (number and math.isfinite(value) and 0 <= value <= LONGEST_S)  # type: ignore[arg-type,operator]


def _is_time(value: object) -> bool:
    if isinstance(value, str):
        try:
            value = maybe_iso8601(value)
        except (ValueError, TypeError, OverflowError, AttributeError):
            return False
    return isinstance(value, datetime) and value.year in _YEARS


def _is_signature(value: object) -> bool:
    """Return True for a task to send afterwards, as `task.s()` is written into a message."""
    if not isinstance(value, Mapping):
        return False
    parts = (("args", list), ("kwargs", dict), ("options", dict))
    return is_name(value.get("task")) and all(isinstance(value.get(name) or kind(), kind) for name, kind in parts)


def _all(check: Check) -> Check:
    return lambda value: isinstance(value, list | tuple) and all(map(check, value))


_SIGNATURES = maybe(_all(_is_signature))
_NAMES = maybe(lambda value: is_name(value) or _all(is_name)(value))
_PROCESSES: Check = lambda value: is_whole(value, _MOST_PROCESSES + 1)  # noqa: E731 - a row of the tables below

_TASK: dict[str, Check] = {
    "task": is_name,
    "id": is_name,
    **dict.fromkeys(("root_id", "parent_id", "group", "shadow", "lang", "origin", "meth"), NAME),
    **dict.fromkeys(("argsrepr", "kwargsrepr"), TEXT),
    **dict.fromkeys(("eta", "expires"), maybe(_is_time)),
    "timelimit": maybe(lambda value: isinstance(value, list | tuple) and len(value) == 2 and all(map(_is_seconds, value))),
    **dict.fromkeys(
        ("retries", "replaced_task_nesting", "group_index", "trawl_restored"),
        maybe(lambda value: is_whole(value, _MOST_RETRIES)),
    ),
    **dict.fromkeys(("ignore_result", "redelivered"), maybe(of_type(bool))),
    "groups": maybe(_all(is_name)),
    "stamped_headers": maybe(_all(is_name)),
    "stamps": maybe(of_type(dict)),
    # Named in headers they would override the body, or a method of Celery's.
    **dict.fromkeys(("callbacks", "errbacks", "chain", "chord", "compression"), lambda value: value is None),
    **dict.fromkeys([name for name in vars(Context) if callable(getattr(Context, name))], lambda _: False),
}
_EMBEDDED: dict[str, Check] = {
    **dict.fromkeys(("callbacks", "errbacks", "chain"), _SIGNATURES),
    "chord": maybe(_is_signature),
}

# Commands of Celery's remote control that store their arguments, or use them outside of their `try`. An argument that is
# not named here may be anything; the command itself reports unknown ones.
_COMMANDS: dict[str, dict[str, Check]] = {
    "revoke": {"task_id": _NAMES, "signal": NAME, "terminate": maybe(of_type(bool))},
    "terminate": {"task_id": _NAMES, "signal": NAME},
    "query_task": {"ids": _NAMES},
    "revoke_by_stamped_headers": {"headers": lambda value: isinstance(value, dict) and all(map(_NAMES, value.values()))},
    "rate_limit": {"task_name": is_name, "rate_limit": maybe(lambda value: is_name(value) or _is_seconds(value))},
    "time_limit": {"task_name": is_name, "soft": _is_seconds, "hard": _is_seconds},
    "hello": {"from_node": NAME, "revoked": maybe(_all(is_name))},
    "pool_grow": {"n": _PROCESSES},
    "pool_shrink": {"n": _PROCESSES},
    "autoscale": {"max": maybe(_PROCESSES), "min": maybe(_PROCESSES)},
    "add_consumer": dict.fromkeys(("queue", "exchange", "exchange_type", "routing_key"), NAME)
    | {"exchange_type": lambda value: value in (None, "direct")},
    "cancel_consumer": {"queue": is_name},
    "shutdown": {"msg": NAME},
}
_NEEDED = {"add_consumer": "queue", "cancel_consumer": "queue"}


def fault_of_task(headers: object, body: object) -> str | None:
    """Return the fault in the headers or the decoded body of a message that shall run a task."""
    if not isinstance(headers, dict) or "task" not in headers:
        return "names no task in its headers"
    if fault := fault_of_fields(headers, _TASK, "header ", needed=("task", "id")):
        return fault
    if not (isinstance(body, list | tuple) and len(body) == 3):
        return f"has a body that is {kind_of(body)}, not [arguments, named arguments, what follows]"
    args, kwargs, embedded = body
    if not isinstance(args, list | tuple) or not isinstance(kwargs, dict):
        return f"has arguments of the types {kind_of(args)} and {kind_of(kwargs)}, not a list and an object"
    if embedded is None:
        return None
    if not isinstance(embedded, dict):
        return f"is followed by {kind_of(embedded)}, not an object"
    if unknown := embedded.keys() - _EMBEDDED.keys():
        return f"is followed by {shown(min(unknown))}, which Celery does not know"
    return fault_of_fields(embedded, _EMBEDDED, "what follows: ")


def fault_of_command(body: object, headers: object) -> str | None:
    """Return the fault of a command of Celery's remote control."""
    if not isinstance(body, dict) or not isinstance(headers, dict):
        return f"is {kind_of(body)}, not an object"
    checks: dict[str, Check] = {
        "method": is_name,
        "arguments": maybe(of_type(dict)),
        "destination": maybe(_all(is_name)),
        "pattern": NAME,
        "matcher": lambda value: value in (None, "glob"),  # a regular expression could take for ever
        "ticket": NAME,
        "reply_to": maybe(
            lambda value: isinstance(value, dict) and all(is_name(value.get(n)) for n in ("exchange", "routing_key"))
        ),
    }
    if unknown := body.keys() - checks.keys():
        return f"has the field {shown(min(unknown))}, which remote control does not know"
    method = body.get("method")
    in_headers = {"clock": maybe(is_clock)}
    if fault := fault_of_fields(body, checks, needed=("method",)) or fault_of_fields(headers, in_headers, "header "):
        return fault
    arguments = body.get("arguments") or {}
    needed = _NEEDED.get(str(method))
    return fault_of_fields(arguments, _COMMANDS.get(str(method), {}), f"{method}: ", needed=(needed,) if needed else ())


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
                fault = _fault_of_signature(message) or fault_of_task(message.headers, message.payload)
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


def _fault_of_signature(message: Any) -> str | None:
    # For the queue in which Redis had it, not the one that it names: it may have been written for another one.
    return fault_of_signature(message, str(message.channel.delivering[0])) if signing_is_on() else None


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
