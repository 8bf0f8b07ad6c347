"""Messages of the broker that no worker could read or run: kept as they were, with the reason, until replayed or purged.

    DeadMessages(client).add(b"{}", queue="control", reason="has no properties")
    DeadMessages(client).newest(20)
    DeadMessages(client).forget(message)

An entry is one line of JSON (`at_ms`, `queue`, `reason`, and `form`, which the version before reads) and the message, byte for
byte. Other entries are foreign: they are counted and kept.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import redis

from workers.state.keys import FleetKeys

from .keys import script

MOST_KEPT = 10_000
"""Messages; beyond that the oldest are dropped."""
BATCH = 100
LONGEST_REASON = 500
_SHOWN_BYTES = 200


@dataclass(frozen=True, kw_only=True)
class DeadMessage:
    """One message that was set aside."""

    entry: bytes = field(repr=False)  # as it lies in the list
    at_s: float  # epoch seconds of Redis
    queue: str
    reason: str
    raw: bytes

    @property
    def text(self) -> str:
        """The beginning of the message, for people: printable, on one line."""
        shown = self.raw[:_SHOWN_BYTES].decode("utf-8", "backslashreplace")
        return shown if shown.isprintable() else repr(shown)


class DeadMessages:
    """The list of one fleet. Raises redis.RedisError where Redis is away."""

    def __init__(self, client: redis.Redis, keys: FleetKeys | None = None) -> None:
        self._client = client
        self._key = (keys or FleetKeys()).dead_messages()

    def add(self, raw: bytes, *, queue: str, reason: str, most: int = MOST_KEPT) -> int:
        """Keep a message; returns how many older ones were dropped to make room."""
        head = json.dumps({"queue": queue, "reason": reason[:LONGEST_REASON], "form": "raw"})
        return int(script("dead_message")(self._client, {"messages": self._key}, {"head": head, "raw": raw, "most": most}))

    def __len__(self) -> int:
        return int(self._client.llen(self._key))

    def newest(self, limit: int) -> tuple[list[DeadMessage], int]:
        """Return the `limit` newest messages, newest first, and the number of foreign entries among those looked at."""
        entries: Any = self._client.lrange(self._key, -limit, -1)
        found = [_parse(entry) for entry in entries]
        known = [one for one in reversed(found) if one is not None]
        return known, len(found) - len(known)

    def batches(self) -> Iterator[list[DeadMessage]]:
        """Yield the present messages, the newest batch first, so that forgetting one leaves the others where they are; within a
        batch the oldest first.
        """
        end = len(self)
        while end > 0:
            first = max(0, end - BATCH)
            entries: Any = self._client.lrange(self._key, first, end - 1)
            yield [one for entry in entries if (one := _parse(entry)) is not None]
            end = first

    def forget(self, message: DeadMessage) -> bool:
        """Remove the message; return True if it was still there."""
        return bool(self._client.lrem(self._key, 1, message.entry))  # type: ignore[arg-type]  # bytes are right


def _parse(entry: bytes) -> DeadMessage | None:
    head, newline, raw = entry.partition(b"\n")
    try:
        fields = json.loads(head)
        at_s, queue = fields["at_ms"] / 1000, str(fields["queue"])
        reason = str(fields["reason"])
    except (ValueError, LookupError, TypeError, ArithmeticError, RecursionError):
        return None
    if not newline:
        return None
    return DeadMessage(entry=entry, at_s=at_s, queue=queue, reason=reason, raw=raw)
