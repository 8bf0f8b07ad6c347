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
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Any, Literal

import redis
from pydantic import Field, StringConstraints

from forums.state.keys import ForumFleetKeys
from forums.storage.read.event_reader import Event
from forums.storage.write.event_log import Position
from redis_components.server.printable import kind_of

from .outputs import Delivery, NotTaken, OutputOptions, Taken, acknowledged, encode, require


class StreamOptions(OutputOptions):
    """A Redis stream, for consumer groups."""

    kind: Literal["stream"]
    max_length: int = Field(10_000, ge=100, le=10_000_000, description="entries; a full stream waits for its slowest group")

    def deliver(self, to: Delivery, events: Sequence[Event]) -> Taken:
        """Add the new events, as far as there is room."""
        client, key = to.client, ForumFleetKeys().event_stream(to.name)
        try:
            last = _last_of(client, key, to.end)
            old = sum(1 for event in events if last is not None and event.at <= last)
            new = events[old : old + self._room(client, key, len(events) - old)]
            if new:
                pipeline = client.pipeline(transaction=True)
                for event in new:
                    pipeline.xadd(key, {"id": event.id, "event": encode(event)}, id=event.position)
                pipeline.execute()
        except redis.RedisError as error:
            raise NotTaken(f"{key}: {error}") from error
        return Taken(number=old + len(new))

    def _room(self, client: redis.Redis, key: str, wanted: int) -> int:
        """Return how many events may be added, `wanted` at most and at least one. Raises NotTaken if a group keeps the stream
        full.
        """
        room = self.max_length - int(client.xlen(key))
        if room >= wanted:
            return wanted
        groups: Any = client.xinfo_groups(key)
        if not groups:
            client.xtrim(key, maxlen=max(0, self.max_length - wanted), approximate=False)
            return min(wanted, self.max_length)
        needed = {group["name"].decode(): _needed(client, key, group) for group in groups}
        slowest = min(needed, key=lambda name: needed[name])
        client.xtrim(key, minid=str(needed[slowest]), approximate=False)
        room = self.max_length - int(client.xlen(key))
        if room <= 0:
            raise NotTaken(
                f"{key} is full: the group {slowest} has not acknowledged its {self.max_length:,} entries; the rest waits"
                f" in the database. If the group is not used any more: XGROUP DESTROY {key} {slowest}"
            )
        return min(room, wanted)


def _last_of(client: redis.Redis, key: str, end: Position) -> Position | None:
    if not client.exists(key):
        return None
    info: Any = client.xinfo_stream(key)
    last = _position(info["last-generated-id"])
    if last >= end:
        raise NotTaken(f"{key} ends with event {last}, which this database does not have: delete that key, or rename the output")
    return last


def _needed(client: redis.Redis, key: str, group: Any) -> Position:
    """Return the oldest entry that a group has not acknowledged."""
    if group["pending"]:
        summary: Any = client.xpending(key, group["name"])
        if summary["min"]:
            return _position(summary["min"])
    last = _position(group["last-delivered-id"])
    return Position(last.seq, last.place + 1)


def _position(stream_id: bytes | str) -> Position:
    return Position.parse(stream_id.decode() if isinstance(stream_id, bytes) else stream_id)


_REQUEST_MS = 8000
_BATCH_S = 15.0  # the slowest batch: a round has to end before its task's time limit


class KafkaOptions(OutputOptions):
    """A topic of Kafka."""

    kind: Literal["kafka"]
    servers: str = Field(min_length=1, description="`host:port`, separated by commas")
    topic: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]+$", max_length=249)] = Field(description="its name")
    tls: bool = Field(False, description="TLS with the machine's certificates")
    user: str = Field("", description="left out: no login")
    password: str = Field("", description="`${NAME}` of the environment")
    sasl: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = Field("PLAIN", description="mechanism of the login")
    idempotent: bool = Field(True, description="`false`: for a broker without idempotent producers")

    def secrets(self) -> Mapping[str, int]:
        """Return the key of the password, if there is a login."""
        return {"password": 1} if self.user else {}

    def deliver(self, to: Delivery, events: Sequence[Event]) -> Taken:
        """Send the first events; they are taken when every one was acknowledged."""
        require("aiokafka", to.name, "aiokafka", "kafka")
        from aiokafka.errors import KafkaError

        logging.getLogger("aiokafka").setLevel(logging.CRITICAL)  # errors are raised, too
        try:
            return acknowledged(self._send(events), _BATCH_S)
        except KafkaError as error:
            raise NotTaken(f"Kafka: {' '.join(str(error).split())}") from None

    async def _send(self, events: Sequence[Event]) -> Taken:
        from aiokafka import AIOKafkaProducer
        from aiokafka.errors import MessageSizeTooLargeError

        secure = {
            "security_protocol": f"{'SASL_' if self.user else ''}{'SSL' if self.tls else 'PLAINTEXT'}",
            "ssl_context": ssl.create_default_context() if self.tls else None,
            **(
                {"sasl_mechanism": self.sasl, "sasl_plain_username": self.user, "sasl_plain_password": self.password}
                if self.user
                else {}
            ),
        }
        producer = AIOKafkaProducer(
            bootstrap_servers=self.servers,
            acks="all",
            enable_idempotence=self.idempotent,
            request_timeout_ms=_REQUEST_MS,
            **secure,
        )
        try:
            await producer.start()
            pending, refused = [], []
            for event in events:
                key = f"{event.site}/{event.thread or event.item}".encode()
                headers = [("id", event.id.encode())]
                try:
                    pending.append(await producer.send(self.topic, encode(event), key=key, headers=headers))
                except MessageSizeTooLargeError as error:  # of this one alone, and for good
                    refused.append((event, str(error)))
            await asyncio.gather(*pending)
            return Taken(number=len(events), refused=refused)
        finally:
            await producer.stop()


_CONNECT_S = 5
_NATS_BATCH = 200  # events


class NatsOptions(OutputOptions):
    """A subject of a NATS JetStream stream."""

    kind: Literal["nats"]
    url: str = Field(description="`${NAME}` of the environment: `nats://user:password@host:4222`, `tls://…`")
    subject: Annotated[str, StringConstraints(pattern=r"^[^\s*>]+$")] = Field(description="a stream must keep it")

    def secrets(self) -> Mapping[str, int]:
        """Return the key of the URL, which has a password."""
        return {"url": 1}

    def deliver(self, to: Delivery, events: Sequence[Event]) -> Taken:
        """Publish the first events in order; they are taken when the last one was acknowledged."""
        given = events[:_NATS_BATCH]
        require("nats", to.name, "nats-py", "nats")
        acknowledged(self._publish(given), _BATCH_S)
        return Taken(number=len(given))

    async def _publish(self, events: Sequence[Event]) -> None:
        import nats
        from nats.errors import Error
        from nats.js.errors import NoStreamResponseError

        client = None
        try:
            client = await nats.connect(
                self.url, connect_timeout=_CONNECT_S, allow_reconnect=False, error_cb=_quiet, name="trawl"
            )
            stream = client.jetstream(timeout=_CONNECT_S)
            for event in events:
                await stream.publish(self.subject, encode(event), headers={"Nats-Msg-Id": event.id})
        except NoStreamResponseError:
            raise NotTaken(
                f"no stream of JetStream keeps the subject {self.subject}: nats stream add, with that subject"
            ) from None
        except (Error, OSError) as error:  # their texts have no address, so no password
            raise NotTaken(f"NATS: {error or kind_of(error)}") from None
        finally:
            if client is not None:
                with suppress(Error, OSError):
                    await client.close()


async def _quiet(_: Exception) -> None:
    """Ignore errors, which are raised, too; nats-py would log them a second time."""
