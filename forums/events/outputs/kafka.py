"""Output to a topic of Kafka (the extra `kafka`).

Messages are keyed by the thread, so that its events are in order within their partition; each has the event's id as a header. An
event counts as taken when all in-sync replicas have it.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Sequence

from forums.events.rules import KafkaOptions
from forums.storage.read.event_reader import Event

from .delivery import NotTaken, Taken, acknowledged, encode, require

_REQUEST_MS = 8000
_BATCH_S = 15.0  # the slowest batch: a round has to end before its task's time limit
_BATCH = 500  # events


class KafkaOutput:
    """One topic."""

    def __init__(self, name: str, options: KafkaOptions) -> None:
        self._name = name
        self._options = options

    def deliver(self, events: Sequence[Event], *, single: bool = False) -> Taken:
        """Send the first events; they are taken when every one was acknowledged."""
        given = events[: 1 if single else _BATCH]
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
