"""Outputs of events into queues: a Redis stream, a topic of Kafka (the extra `kafka`), a subject of NATS JetStream (`nats`).

Redis: for consumer groups (XREADGROUP). An entry's id is the event's position, so Redis refuses a duplicate. The stream has a
maximum length. If it is full, entries that every group has acknowledged are trimmed; while a group has not acknowledged them,
nothing is added, and the rest waits in the database. Without groups the oldest entries are trimmed.

Kafka: messages are keyed by the thread, so that its events are in order within their partition; each has the event's id as a
header. An event counts as taken when all in-sync replicas have it.

NATS: the operator creates the stream of the subject, which acknowledges each event. A message's `Nats-Msg-Id` is the event's id,
so that NATS drops an event sent again within the stream's duplicate window (two minutes by default).
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import redis

from forums.storage.read.event_reader import Event
from forums.storage.write.event_log import Position
from redis_components.server.printable import kind_of

from .outputs import NotTaken, Taken, acknowledged, encode, require
from .rules import KafkaOptions, NatsOptions


class StreamOutput:
    """One stream; `end` is the position after all existing events."""

    def __init__(self, client: redis.Redis, key: str, max_length: int, end: Position) -> None:
        self._client = client
        self._key = key
        self._max_length = max_length
        self._end = end

    def deliver(self, events: Sequence[Event], *, single: bool = False) -> Taken:
        """Add the new events, as far as there is room."""
        given = events[:1] if single else events
        try:
            last = self._last()
            old = sum(1 for event in given if last is not None and event.at <= last)
            new = given[old : old + self._room(len(given) - old)]
            if new:
                pipeline = self._client.pipeline(transaction=True)
                for event in new:
                    pipeline.xadd(self._key, {"id": event.id, "event": encode(event)}, id=event.position)
                pipeline.execute()
        except redis.RedisError as error:
            raise NotTaken(f"{self._key}: {error}") from error
        return Taken(number=old + len(new))

    def _last(self) -> Position | None:
        if not self._client.exists(self._key):
            return None
        info: Any = self._client.xinfo_stream(self._key)
        last = _position(info["last-generated-id"])
        if last >= self._end:
            raise NotTaken(
                f"{self._key} ends with event {last}, which this database does not have: delete that key, or rename the output"
            )
        return last

    def _room(self, wanted: int) -> int:
        """Return how many events may be added, `wanted` at most and at least one. Raises NotTaken if a group keeps the stream
        full.
        """
        room = self._max_length - int(self._client.xlen(self._key))
        if room >= wanted:
            return wanted
        groups: Any = self._client.xinfo_groups(self._key)
        if not groups:
            self._client.xtrim(self._key, maxlen=max(0, self._max_length - wanted), approximate=False)
            return min(wanted, self._max_length)
        needed = {group["name"].decode(): self._needed(group) for group in groups}
        slowest = min(needed, key=lambda name: needed[name])
        self._client.xtrim(self._key, minid=str(needed[slowest]), approximate=False)
        room = self._max_length - int(self._client.xlen(self._key))
        if room <= 0:
            raise NotTaken(
                f"{self._key} is full: the group {slowest} has not acknowledged its {self._max_length:,} entries; the rest waits"
                f" in the database. If the group is not used any more: XGROUP DESTROY {self._key} {slowest}"
            )
        return min(room, wanted)

    def _needed(self, group: Any) -> Position:
        """Return the oldest entry that a group has not acknowledged."""
        if group["pending"]:
            summary: Any = self._client.xpending(self._key, group["name"])
            if summary["min"]:
                return _position(summary["min"])
        last = _position(group["last-delivered-id"])
        return Position(last.seq, last.place + 1)


def _position(stream_id: bytes | str) -> Position:
    return Position.parse(stream_id.decode() if isinstance(stream_id, bytes) else stream_id)


_REQUEST_MS = 8000
_BATCH_S = 15.0  # the slowest batch: a round has to end before its task's time limit
_KAFKA_BATCH = 500  # events


class KafkaOutput:
    """One topic."""

    def __init__(self, name: str, options: KafkaOptions) -> None:
        self._name = name
        self._options = options

    def deliver(self, events: Sequence[Event], *, single: bool = False) -> Taken:
        """Send the first events; they are taken when every one was acknowledged."""
        given = events[: 1 if single else _KAFKA_BATCH]
        require("aiokafka", self._name, "aiokafka", "kafka")
        from aiokafka.errors import KafkaError

        logging.getLogger("aiokafka").setLevel(logging.CRITICAL)  # errors are raised, too
        try:
            return acknowledged(self._send(given), _BATCH_S)
        except KafkaError as error:
            raise NotTaken(f"Kafka: {' '.join(str(error).split())}") from None

    async def _send(self, events: Sequence[Event]) -> Taken:
        from aiokafka import AIOKafkaProducer
        from aiokafka.errors import MessageSizeTooLargeError

        own = self._options
        secure = {
            "security_protocol": f"{'SASL_' if own.user else ''}{'SSL' if own.tls else 'PLAINTEXT'}",
            "ssl_context": ssl.create_default_context() if own.tls else None,
            **(
                {"sasl_mechanism": own.sasl, "sasl_plain_username": own.user, "sasl_plain_password": own.password}
                if own.user
                else {}
            ),
        }
        producer = AIOKafkaProducer(
            bootstrap_servers=own.servers, acks="all", enable_idempotence=own.idempotent, request_timeout_ms=_REQUEST_MS, **secure
        )
        try:
            await producer.start()
            pending, refused = [], []
            for event in events:
                key = f"{event.site}/{event.thread or event.item}".encode()
                headers = [("id", event.id.encode())]
                try:
                    pending.append(await producer.send(own.topic, encode(event), key=key, headers=headers))
                except MessageSizeTooLargeError as error:  # of this one alone, and for good
                    refused.append((event, str(error)))
            await asyncio.gather(*pending)
            return Taken(number=len(events), refused=refused)
        finally:
            await producer.stop()


_CONNECT_S = 5
_NATS_BATCH = 200  # events


class NatsOutput:
    """One subject."""

    def __init__(self, name: str, options: NatsOptions) -> None:
        self._name = name
        self._options = options

    def deliver(self, events: Sequence[Event], *, single: bool = False) -> Taken:
        """Publish the first events in order; they are taken when the last one was acknowledged."""
        given = events[: 1 if single else _NATS_BATCH]
        require("nats", self._name, "nats-py", "nats")
        acknowledged(self._publish(given), _BATCH_S)
        return Taken(number=len(given))

    async def _publish(self, events: Sequence[Event]) -> None:
        import nats
        from nats.errors import Error
        from nats.js.errors import NoStreamResponseError

        client = None
        try:
            client = await nats.connect(
                self._options.url, connect_timeout=_CONNECT_S, allow_reconnect=False, error_cb=_quiet, name="trawl"
            )
            stream = client.jetstream(timeout=_CONNECT_S)
            for event in events:
                await stream.publish(self._options.subject, encode(event), headers={"Nats-Msg-Id": event.id})
        except NoStreamResponseError:
            raise NotTaken(
                f"no stream of JetStream keeps the subject {self._options.subject}: nats stream add, with that subject"
            ) from None
        except (Error, OSError) as error:  # their texts have no address, so no password
            raise NotTaken(f"NATS: {error or kind_of(error)}") from None
        finally:
            if client is not None:
                with suppress(Error, OSError):
                    await client.close()


async def _quiet(_: Exception) -> None:
    """Ignore errors, which are raised, too; nats-py would log them a second time."""
