"""Output to a subject of NATS JetStream (the extra `nats`), which acknowledges each event.

The operator creates the stream of the subject. A message's `Nats-Msg-Id` is the event's id, so that NATS drops an event sent
again within the stream's duplicate window (two minutes by default).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from forums.events.rules import NatsOptions
from forums.storage.read.event_reader import Event

from .delivery import NotTaken, Taken, acknowledged, encode, require

_CONNECT_S = 5
_BATCH_S = 15.0  # the slowest batch: a round has to end before its task's time limit
_BATCH = 200  # events


class NatsOutput:
    """One subject."""

    def __init__(self, name: str, options: NatsOptions) -> None:
        self._name = name
        self._options = options

    def deliver(self, events: Sequence[Event], *, single: bool = False) -> Taken:
        """Publish the first events in order; they are taken when the last one was acknowledged."""
        given = events[: 1 if single else _BATCH]
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
            raise NotTaken(f"NATS: {error or type(error).__name__}") from None
        finally:
            if client is not None:
                with suppress(Error, OSError):
                    await client.close()


async def _quiet(_: Exception) -> None:
    """Ignore errors, which are raised, too; nats-py would log them a second time."""
