"""Signatures of the broker's messages, made by their sender and checked before Celery reads them.

Each check returns the fault in one line, or None for a valid message.
"""

from __future__ import annotations

import base64
import json
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from typing import Any

import redis
from kombu.utils.json import dumps

from redis_components.errors import TrawlError
from redis_components.server.signing import AHEAD_S, fault, seal, signed_at, signing_is_on
from workers.environment.variables import Signing
from workers.state.keys import FleetKeys

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


def sign(headers: dict[str, Any], body: bytes, properties: Mapping[str, Any], queue: str) -> None:
    """Add the signature to the headers of a message. `body`: JSON as it is sent. Raises ConfigError without a key."""
    headers[QUEUE] = queue
    headers[SIGNATURE] = seal("task", *_parts(headers, body, properties, queue))


def fault_of_signature(message: Any, queue: str) -> str | None:
    """Return the fault in the signature of kombu's `message` that lay in `queue`."""
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
    return json.dumps(json.loads(wire_json(value)), sort_keys=True)


def wire_json(value: Any) -> str:
    """Return a value as kombu sends it."""
    return str(dumps(value))  # type: ignore[no-untyped-call]


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
