"""kombu's Redis transport with a guard: no invalid message ends a worker, and none is lost because it could not be read or run.

Such a message is set aside with its bytes and the reason (`trawl dead messages`), and never given to another worker. It is found

- before kombu makes a message of it (here): text that is not JSON, JSON that is not a message;
- before Celery makes a request of it (`worker.py`): headers, arguments, time limits, signature;
- when Celery refuses it, or raises what is not an error of the broker (`worker.py`);
- when several workers have died while they held it, for any reason (here).

A command of remote control that cannot be one is logged and forgotten: it was sent to all workers, and is gone.

The internals of Celery and kombu that this takes are in `tasks/base.py`.
"""

from __future__ import annotations

import json
import logging
import reprlib
from collections.abc import Callable, Mapping
from functools import cached_property
from queue import Empty
from typing import Any

import redis
from celery.app import amqp
from celery.signals import before_task_publish
from kombu import connection as kombu_connection
from kombu.transport import redis as over_redis
from kombu.utils.json import loads

from redis_components.connection import connect
from redis_components.errors import TrawlError
from redis_components.server.printable import in_words, masked_text
from redis_components.server.signing import signing_is_on
from tasks.base import is_maintenance
from workers.state.dead_messages import MOST_KEPT, DeadMessage, add

from .signed_messages import sign, signed_again, wire_json

logger = logging.getLogger(__name__)

_LOGGED_BYTES = 64 * 1024

# valid messages

LONGEST_NAME = 255
"""Characters of a task's name, an id, a queue."""
_CLOCK_END = 2**53
_SHOWN = 60

Check = Callable[[Any], bool]


def is_name(value: object) -> bool:
    """Return True for a printable text of a name's length."""
    return isinstance(value, str) and 0 < len(value) <= LONGEST_NAME and value.isprintable()


def is_whole(value: object, end: int) -> bool:
    """Return True for a whole number from 0 to below `end`."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < end


def maybe(check: Check) -> Check:
    """Return the check that takes None, too."""
    return lambda value: value is None or check(value)


def of_type(*kinds: type) -> Check:
    """Return the check for values of exactly these types."""
    return lambda value: type(value) in kinds


def is_clock(value: object) -> bool:
    """Return True for a value of Celery's logical clock."""
    return is_whole(value, _CLOCK_END)


def fault_of_fields(
    fields: Mapping[Any, Any], checks: Mapping[str, Check], where: str = "", *, needed: tuple[str, ...] = ()
) -> str | None:
    """Return the first fault of fields with checks; others may hold anything."""
    for name in needed:
        if name not in fields:
            return f"has no {where}{name}"
    for name, value in fields.items():
        check = checks.get(name)
        if check is not None and not check(value):
            return f"has {where}{name}={shown(value)}, which cannot be"
    return None


def shown(value: object) -> str:
    """Return the beginning of a value, for people."""
    text = reprlib.repr(value)  # of few elements and levels: a repr of all could be huge, or too deep
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def kind_of(value: object) -> str:
    """Return the name of a value's type."""
    return type(value).__name__


NAME = maybe(is_name)
TEXT = maybe(of_type(str))

_CONTAINER: dict[str, Check] = {
    "body": TEXT,
    "headers": maybe(of_type(dict)),
    "properties": of_type(dict),
    "content-type": lambda value: value == "application/json",
    "content-encoding": lambda value: value in (None, "utf-8", "UTF-8", "binary"),
}
_PROPERTIES: dict[str, Check] = {
    "delivery_tag": is_name,
    "delivery_info": of_type(dict),
    "body_encoding": lambda value: value in (None, "base64", "utf-8"),
    "priority": maybe(lambda value: is_whole(value, 256)),
    "correlation_id": NAME,
    "reply_to": NAME,
}
_DELIVERY: dict[str, Check] = {"exchange": TEXT, "routing_key": TEXT, "consumer_tag": TEXT}


def fault_of_container(message: object) -> str | None:
    """Return the fault of a message as kombu's Redis transport keeps it: a dictionary with body, headers and properties."""
    if not isinstance(message, dict):
        return f"is {kind_of(message)}, not an object"
    if fault := fault_of_fields(message, _CONTAINER, needed=("properties",)):
        return fault
    properties = message["properties"]
    if fault := fault_of_fields(properties, _PROPERTIES, "property ", needed=("delivery_tag", "delivery_info")):
        return fault
    if fault := fault_of_fields(properties["delivery_info"], _DELIVERY, "delivery_info "):
        return fault
    headers = message.get("headers") or {}
    return fault_of_fields(headers, {"compression": lambda value: value is None, "clock": maybe(is_clock)}, "header ")


# keeping invalid messages


def set_aside(raw: bytes, *, queue: str, reason: str) -> None:
    """Keep a message in the list of dead ones; where Redis is away, in the log."""
    try:
        dropped = add(connect(), raw, queue=queue, reason=reason)
    except (redis.RedisError, TrawlError) as error:
        logger.critical("a message of queue %r could not be set aside (%s); %s: %r", queue, error, reason, raw[:_LOGGED_BYTES])
        return
    logger.error("a message of queue %r was set aside: it %s; see trawl dead messages", queue, reason)
    if dropped:
        logger.warning("there are more than %d dead messages: the oldest %d were dropped", MOST_KEPT, dropped)


def one_line(error: BaseException) -> str:
    """Return an error in words, printable."""
    text = in_words(error)
    return text if text.isprintable() else ascii(text)


def replay(message: DeadMessage, connection: Any, *, sign: bool = False) -> None:
    """Put a message that was set aside back into its queue, behind what waits there; with `sign` signed by this process.

    Raises kombu's OperationalError where the broker is away, TrawlError for a message that does not fit it.
    """
    with connection.default_channel.conn_or_acquire() as client:
        client.lpush(message.queue, signed_again(message.payload, message.queue) if sign else message.payload)


MOST_RESTORED = 3
"""Workers that may end with one message in hand."""
RESTORED_HEADER = "trawl_restored"


def _text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value


class Guarded:
    """The overrides that both Redis channels share."""

    delivering: tuple[str, bytes] | None = None
    """Queue and bytes of the message that is being delivered; commands of remote control have none."""

    def _brpop_read(self: Any, **options: Any) -> bool:
        try:
            try:
                answer = self.client.parse_response(self.client.connection, "BRPOP", **options)
            except self.connection_errors:
                self.client.connection.disconnect()  # the next look connects again
                raise
            if not answer:
                raise Empty
            key, item = answer
            queue = _text(key).rsplit(self.sep, 1)[0]
            self._queue_cycle.rotate(queue)
            if not self._deliver_guarded(queue, item):
                raise Empty  # a consumer of one message shall wait for the next
            return True
        finally:
            self._in_poll = None
            self._flush_brpop_reauth()

    def _deliver_guarded(self: Any, queue: str, item: bytes | str) -> bool:
        raw = item.encode() if isinstance(item, str) else item
        try:
            payload = loads(raw.decode())  # type: ignore[no-untyped-call]
            fault = fault_of_container(payload)
            if not fault:
                self.Message(payload, channel=self)  # decodes the body
        except Exception as error:  # foreign text can make a decoder raise anything, also MemoryError and RecursionError
            fault = f"cannot be decoded: {one_line(error)}"
        if fault:
            set_aside(raw, queue=queue, reason=fault)
            return False
        self.delivering = queue, raw
        try:
            self.connection._deliver(payload, queue)
        finally:
            self.delivering = None
        return True

    def _receive_one(self: Any, c: Any) -> Any:
        try:
            return super()._receive_one(c)  # type: ignore[misc]  # of kombu's Channel
        except RecursionError as error:
            logger.error("a broadcast was ignored: it cannot be decoded: %s", error)
            raise Empty from None

    def _deliver_fanout_message(self: Any, message: Any, exchange: str) -> bool:
        fault = fault_of_container(message)
        if not fault:
            try:
                self.Message(message, channel=self)
            except Exception as error:
                fault = f"cannot be decoded: {one_line(error)}"
        if fault or exchange not in self._fanout_to_queue:
            logger.error("a broadcast was ignored: it %s", fault or f"is for {exchange!r}, which has no consumer here")
            return False
        return bool(super()._deliver_fanout_message(message, exchange))  # type: ignore[misc]

    def _restore(self: Any, message: Any, leftmost: bool = False) -> None:
        times = message.headers.get(RESTORED_HEADER) or 0
        if times >= MOST_RESTORED:
            raw = json.dumps(message.serializable()).encode()
            queue = str(message.delivery_info.get("routing_key"))
            set_aside(raw, queue=queue, reason=f"was in the hands of {times + 1} workers that ended")
            return
        message.headers[RESTORED_HEADER] = times + 1
        super()._restore(message, leftmost)  # type: ignore[misc]

    def get_table(self: Any, exchange: str) -> list[tuple[str, ...]]:
        """Return the bindings of an exchange; invalid ones are left out, else nothing could be sent through it."""
        with self.conn_or_acquire() as client:
            members = client.smembers(self.keyprefix_queue % exchange)
        rows = [tuple(member.decode(errors="replace").split(self.sep)) for member in members]
        return [row for row in rows if len(row) == 3]


class Channel(Guarded, over_redis.Channel):  # type: ignore[misc]  # kombu's type for it is bool
    """Channel of a Redis server."""


class SentinelChannel(Guarded, over_redis.SentinelChannel):  # type: ignore[misc]
    """Channel of a Redis found by Sentinel."""


class Transport(over_redis.Transport):
    Channel = Channel


class SentinelTransport(over_redis.SentinelTransport):
    Channel = SentinelChannel


_TRANSPORTS = {over_redis.Transport: Transport, over_redis.SentinelTransport: SentinelTransport}


class GuardedTransport:
    """Mixin of kombu's Connection that uses the guarded transport for every form of Redis URL."""

    def get_transport_cls(self) -> Any:
        found = super().get_transport_cls()  # type: ignore[misc]  # of kombu's Connection
        return _TRANSPORTS.get(found, found)


class Connection(GuardedTransport, kombu_connection.Connection):
    """To the broker."""

    def Pool(self, limit: int | None = None, **kwargs: Any) -> ConnectionPool:  # noqa: N802 - kombu's name
        return ConnectionPool(self, limit, **kwargs)  # type: ignore[no-untyped-call]


class PooledConnection(GuardedTransport, kombu_connection.PooledConnection):
    """A connection that is kept open for its next user."""


class ConnectionPool(kombu_connection.ConnectionPool):
    def new(self) -> PooledConnection:
        return PooledConnection(self, **dict(self.connection._info(resolve=False)))  # type: ignore[no-untyped-call]


@before_task_publish.connect
def _sign_task(
    body: Any = None, routing_key: str = "", headers: dict[str, Any] | None = None, properties: Any = None, **_: Any
) -> None:
    """Sign a message that Celery sends next. An error here is logged, and the message stays unsigned: workers refuse it."""
    if headers is not None and signing_is_on():
        sign(headers, wire_json(body).encode(), properties or {}, str(routing_key))


_FOR_PEOPLE = ("argsrepr", "kwargsrepr", "args", "kwargs")


class AMQP(amqp.AMQP):
    """Celery's, with guarded connections, without the event `task-sent` of the fleet's own maintenance, and without secrets in
    the arguments that are shown.
    """

    Connection = Connection

    @cached_property
    def create_task_message(self) -> Any:
        make = self.task_protocols[self.app.conf.task_protocol]

        def made(task_id: str, name: str, *args: Any, **options: Any) -> Any:
            message = make(task_id, name, *args, **options)
            for shown in filter(None, (message.headers, message.sent_event)):  # for people: Flower, the log, events
                shown |= {name: masked_text(shown[name]) for name in _FOR_PEOPLE if shown.get(name)}
            return message._replace(sent_event=None) if is_maintenance(name, options.get("headers")) else message

        return made
