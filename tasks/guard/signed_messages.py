"""Validates messages of the broker, and checks their signatures, before Celery reads them.

Celery reads the fields of a message in the worker's main process and trusts them: a time limit that is text ends the worker.
Pure functions; each returns the fault in one line, or None for a valid message. Fields that no code reads may hold anything.
"""

from __future__ import annotations

import base64
import json
import math
import reprlib
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from hashlib import sha256
from typing import Any

import redis
from celery.app.task import Context
from celery.signals import before_task_publish
from celery.utils.time import maybe_iso8601
from kombu.utils.json import dumps

from redis_components.errors import TrawlError
from redis_components.server.signing import AHEAD_S, fault, seal, signed_at, signing_is_on
from workers.environment.variables import Signing
from workers.state.keys import FleetKeys

LONGEST_NAME = 255
"""Characters of a task's name, an id, a queue."""
LONGEST_S = 10 * 366 * 86400
"""Seconds of a time limit."""
_YEARS = range(1970, 3000)
_MOST_RETRIES = 1_000_000
_MOST_PROCESSES = 1000
_CLOCK_END = 2**53
_SHOWN = 60

Check = Callable[[Any], bool]


def _is_name(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= LONGEST_NAME and value.isprintable()


def _is_whole(value: object, end: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < end


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
    return _is_name(value.get("task")) and all(isinstance(value.get(name) or kind(), kind) for name, kind in parts)


def _all(check: Check) -> Check:
    return lambda value: isinstance(value, list | tuple) and all(map(check, value))


def _maybe(check: Check) -> Check:
    return lambda value: value is None or check(value)


def _is(*kinds: type) -> Check:
    return lambda value: type(value) in kinds


_name = _maybe(_is_name)
_text = _maybe(_is(str))
_signatures = _maybe(_all(_is_signature))
_names = _maybe(lambda value: _is_name(value) or _all(_is_name)(value))
_processes: Check = lambda value: _is_whole(value, _MOST_PROCESSES + 1)  # noqa: E731 - a row of the tables below

_CONTAINER: dict[str, Check] = {
    "body": _text,
    "headers": _maybe(_is(dict)),
    "properties": _is(dict),
    "content-type": lambda value: value == "application/json",
    "content-encoding": lambda value: value in (None, "utf-8", "UTF-8", "binary"),
}
_PROPERTIES: dict[str, Check] = {
    "delivery_tag": _is_name,
    "delivery_info": _is(dict),
    "body_encoding": lambda value: value in (None, "base64", "utf-8"),
    "priority": _maybe(lambda value: _is_whole(value, 256)),
    "correlation_id": _name,
    "reply_to": _name,
}
_DELIVERY: dict[str, Check] = {"exchange": _text, "routing_key": _text, "consumer_tag": _text}

_TASK: dict[str, Check] = {
    "task": _is_name,
    "id": _is_name,
    **dict.fromkeys(("root_id", "parent_id", "group", "shadow", "lang", "origin", "meth"), _name),
    **dict.fromkeys(("argsrepr", "kwargsrepr"), _text),
    **dict.fromkeys(("eta", "expires"), _maybe(_is_time)),
    "timelimit": _maybe(lambda value: isinstance(value, list | tuple) and len(value) == 2 and all(map(_is_seconds, value))),
    **dict.fromkeys(
        ("retries", "replaced_task_nesting", "group_index", "trawl_restored"),
        _maybe(lambda value: _is_whole(value, _MOST_RETRIES)),
    ),
    **dict.fromkeys(("ignore_result", "redelivered"), _maybe(_is(bool))),
    "groups": _maybe(_all(_is_name)),
    "stamped_headers": _maybe(_all(_is_name)),
    "stamps": _maybe(_is(dict)),
    # Named in headers they would override the body, or a method of Celery's.
    **dict.fromkeys(("callbacks", "errbacks", "chain", "chord", "compression"), lambda value: value is None),
    **dict.fromkeys([name for name in vars(Context) if callable(getattr(Context, name))], lambda _: False),
}
_EMBEDDED: dict[str, Check] = {
    **dict.fromkeys(("callbacks", "errbacks", "chain"), _signatures),
    "chord": _maybe(_is_signature),
}

# Commands of Celery's remote control that store their arguments, or use them outside of their `try`. An argument that is
# not named here may be anything; the command itself reports unknown ones.
_COMMANDS: dict[str, dict[str, Check]] = {
    "revoke": {"task_id": _names, "signal": _name, "terminate": _maybe(_is(bool))},
    "terminate": {"task_id": _names, "signal": _name},
    "query_task": {"ids": _names},
    "revoke_by_stamped_headers": {"headers": lambda value: isinstance(value, dict) and all(map(_names, value.values()))},
    "rate_limit": {"task_name": _is_name, "rate_limit": _maybe(lambda value: _is_name(value) or _is_seconds(value))},
    "time_limit": {"task_name": _is_name, "soft": _is_seconds, "hard": _is_seconds},
    "hello": {"from_node": _name, "revoked": _maybe(_all(_is_name))},
    "pool_grow": {"n": _processes},
    "pool_shrink": {"n": _processes},
    "autoscale": {"max": _maybe(_processes), "min": _maybe(_processes)},
    "add_consumer": dict.fromkeys(("queue", "exchange", "exchange_type", "routing_key"), _name)
    | {"exchange_type": lambda value: value in (None, "direct")},
    "cancel_consumer": {"queue": _is_name},
    "shutdown": {"msg": _name},
}
_NEEDED = {"add_consumer": "queue", "cancel_consumer": "queue"}


def fault_of_container(message: object) -> str | None:
    """Return the fault of a message as kombu's Redis transport keeps it: a dictionary with body, headers and properties."""
    if not isinstance(message, dict):
        return f"is {_kind(message)}, not an object"
    if fault := _fault(message, _CONTAINER, needed=("properties",)):
        return fault
    properties = message["properties"]
    if fault := _fault(properties, _PROPERTIES, "property ", needed=("delivery_tag", "delivery_info")):
        return fault
    if fault := _fault(properties["delivery_info"], _DELIVERY, "delivery_info "):
        return fault
    headers = message.get("headers") or {}
    return _fault(headers, {"compression": lambda value: value is None, "clock": _maybe(_is_clock)}, "header ")


def fault_of_task(headers: object, body: object) -> str | None:
    """Return the fault in the headers or the decoded body of a message that shall run a task."""
    if not isinstance(headers, dict) or "task" not in headers:
        return "names no task in its headers"
    if fault := _fault(headers, _TASK, "header ", needed=("task", "id")):
        return fault
    if not (isinstance(body, list | tuple) and len(body) == 3):
        return f"has a body that is {_kind(body)}, not [arguments, named arguments, what follows]"
    args, kwargs, embedded = body
    if not isinstance(args, list | tuple) or not isinstance(kwargs, dict):
        return f"has arguments of the types {_kind(args)} and {_kind(kwargs)}, not a list and an object"
    if embedded is None:
        return None
    if not isinstance(embedded, dict):
        return f"is followed by {_kind(embedded)}, not an object"
    if unknown := embedded.keys() - _EMBEDDED.keys():
        return f"is followed by {_shown(min(unknown))}, which Celery does not know"
    return _fault(embedded, _EMBEDDED, "what follows: ")


def fault_of_command(body: object, headers: object) -> str | None:
    """Return the fault of a command of Celery's remote control."""
    if not isinstance(body, dict) or not isinstance(headers, dict):
        return f"is {_kind(body)}, not an object"
    checks: dict[str, Check] = {
        "method": _is_name,
        "arguments": _maybe(_is(dict)),
        "destination": _maybe(_all(_is_name)),
        "pattern": _name,
        "matcher": lambda value: value in (None, "glob"),  # a regular expression could take for ever
        "ticket": _name,
        "reply_to": _maybe(
            lambda value: isinstance(value, dict) and all(_is_name(value.get(n)) for n in ("exchange", "routing_key"))
        ),
    }
    if unknown := body.keys() - checks.keys():
        return f"has the field {_shown(min(unknown))}, which remote control does not know"
    method = body.get("method")
    if fault := _fault(body, checks, needed=("method",)) or _fault(headers, {"clock": _maybe(_is_clock)}, "header "):
        return fault
    arguments = body.get("arguments") or {}
    needed = _NEEDED.get(str(method))
    return _fault(arguments, _COMMANDS.get(str(method), {}), f"{method}: ", needed=(needed,) if needed else ())


def _is_clock(value: object) -> bool:
    return _is_whole(value, _CLOCK_END)


def _fault(
    fields: Mapping[Any, Any], checks: Mapping[str, Check], where: str = "", *, needed: tuple[str, ...] = ()
) -> str | None:
    for name in needed:
        if name not in fields:
            return f"has no {where}{name}"
    for name, value in fields.items():
        check = checks.get(name)
        if check is not None and not check(value):
            return f"has {where}{name}={_shown(value)}, which cannot be"
    return None


def _shown(value: object) -> str:
    text = reprlib.repr(value)  # of few elements and levels: a repr of all could be huge, or too deep
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _kind(value: object) -> str:
    return type(value).__name__


SIGNATURE = "trawl_signature"
QUEUE = "trawl_queue"
"""Header with the queue for which a message was signed; it shows that a message was moved to another queue."""
COMMAND_S = 60.0
"""Seconds for which a command of remote control holds."""
CLOCKS_DIFFER_S = 3.0
"""Tolerated difference of two machines' clocks; `trawl status` names a larger one."""
_HEARD = 10_000

_UNSIGNED = (SIGNATURE, "trawl_restored")


# tasks


@before_task_publish.connect
def _sign_task(
    body: Any = None, routing_key: str = "", headers: dict[str, Any] | None = None, properties: Any = None, **_: Any
) -> None:
    """Sign a message that Celery sends next. An error here is logged, and the message stays unsigned: workers refuse it."""
    if headers is not None and signing_is_on():
        sign(headers, _json(body).encode(), properties or {}, str(routing_key))


def sign(headers: dict[str, Any], body: bytes, properties: Mapping[str, Any], queue: str) -> None:
    """Add the signature to the headers of a message. `body`: JSON as it is sent. Raises ConfigError without a key."""
    headers[QUEUE] = queue
    headers[SIGNATURE] = seal("task", *_parts(headers, body, properties, queue))


def fault_of_signature(message: Any, queue: str) -> str | None:
    """Return the fault in the signature of kombu's `message` that lay in `queue`; None also where signing is off."""
    if not signing_is_on():
        return None
    headers, body = message.headers, message.body
    if not isinstance(headers, dict):
        return "is not signed"
    raw = body.encode() if isinstance(body, str) else bytes(body or b"")
    named = headers.get(QUEUE)
    parts = _parts(headers, raw, message.properties or {}, str(named))
    oldest_s = Signing.read().signing_max_age
    if found := fault(headers.get(SIGNATURE), "task", *parts, oldest_s=oldest_s):
        return found
    return None if named == queue else f"was signed for the queue {named!r:.100}, not for this one"


def signed_again(raw: bytes, queue: str) -> bytes:
    """Return a message as it lies in a queue of Redis, signed for `queue` now. Raises TrawlError for a message that
    is not a task.
    """
    try:
        message = json.loads(raw)
        headers, properties = message["headers"], message["properties"]
        sign(headers, base64.b64decode(message["body"], validate=True), properties, queue)
        return json.dumps(message).encode()
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise TrawlError(f"a dead message of {queue!r:.100} is not a task that could be signed; it is kept") from error


def _parts(headers: Mapping[str, Any], body: bytes, properties: Mapping[str, Any], queue: str) -> tuple[str | bytes, ...]:
    covered = {name: value for name, value in headers.items() if name not in _UNSIGNED and not str(name).startswith("x-")}
    goes_to = [str(properties.get(name) or "") for name in ("reply_to", "correlation_id")]
    return queue, body, _canonical(covered), *goes_to


def _canonical(value: Any) -> str:
    # Through JSON and back: a tuple becomes a list, a number as a key becomes text, as at the other end.
    return json.dumps(json.loads(_json(value)), sort_keys=True)


def _json(value: Any) -> str:
    return str(dumps(value))  # type: ignore[no-untyped-call]  # as kombu's serializer


# remote control


class SigningProducer:
    """A kombu producer that signs what a mailbox sends to workers; answers are not signed."""

    def __init__(self, producer: Any) -> None:
        self._producer = producer

    def publish(self, body: Any, *, headers: Mapping[str, Any] | None = None, **options: Any) -> Any:
        if isinstance(body, dict) and "method" in body and signing_is_on():
            headers = {**(headers or {}), SIGNATURE: seal("command", _canonical(body))}
        return self._producer.publish(body, headers=headers, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._producer, name)


class SigningMailbox:
    """Mixin of kombu's Mailbox: what it sends to workers is signed."""

    @contextmanager
    def producer_or_acquire(self, producer: Any = None, channel: Any = None) -> Iterator[Any]:
        with super().producer_or_acquire(producer, channel) as found:  # type: ignore[misc]  # of kombu's Mailbox
            yield SigningProducer(found)


class ReceivedCommands:
    """Commands of remote control that one worker has received, so that none acts twice. Commands from before its start are
    refused, since an earlier worker may have received them.
    """

    def __init__(self) -> None:
        self._order: deque[str] = deque(maxlen=_HEARD)
        self._since = time.time() - CLOCKS_DIFFER_S

    def fault(self, body: Any, headers: Any) -> str | None:
        """Return the fault in the signature of a command; None also where signing is off."""
        if not signing_is_on():
            return None
        signature = headers.get(SIGNATURE) if isinstance(headers, dict) else None
        if found := fault(signature, "command", _canonical(body), oldest_s=COMMAND_S):
            return found
        if signed_at(str(signature)) < self._since:
            return "was sent before this worker listened"
        if signature in self._order:
            return "was received before"
        self._order.append(str(signature))
        return None


def is_first_run(client: redis.Redis, signature: str) -> bool:
    """Return True if no process has begun the message with this signature, and mark it as begun. Raises redis.RedisError."""
    key = FleetKeys().begun_message(sha256(signature.encode()).hexdigest()[:32])
    holds_s = Signing.read().signing_max_age + 2 * AHEAD_S  # by the clocks of the signer and of any worker
    return bool(client.set(key, b"1", nx=True, ex=round(holds_s)))
