"""Output to a Redis stream, for consumer groups (XREADGROUP).

An entry's id is the event's position, so Redis refuses a duplicate. The stream has a maximum length. If it is full, entries that
every group has acknowledged are trimmed; while a group has not acknowledged them, nothing is added, and the rest waits in the
database. Without groups the oldest entries are trimmed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import redis

from forums.storage.read.event_reader import Event
from forums.storage.write.event_log import Position

from .delivery import NotTaken, Taken, encode


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
