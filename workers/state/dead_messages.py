"""Messages of the broker that no worker could read or run: kept as they were, with the reason, until replayed or purged.

    add(client, b"{}", queue="control", reason="has no properties")
    newest(client, 20)

An entry is one line of JSON (`at_ms`, `queue`, `reason`, and `form`, which the version before reads) and the message, byte for
byte. Other entries are foreign: they are counted and kept.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import redis

from redis_components.admin.dead_letters import Cleared, Entry, clear, entry_of, newest_in, purge_list
from workers.state.keys import FleetKeys

from .keys import script

MOST_KEPT = 10_000
"""Messages; beyond that the oldest are dropped."""
LONGEST_REASON = 500


@dataclass(frozen=True, kw_only=True)
class DeadMessage(Entry):
    """One message that was set aside."""

    queue: str
    raw: bytes = field(repr=False)
    """The entry as it lies in the list."""


def add(client: redis.Redis, raw: bytes, *, queue: str, reason: str, most: int = MOST_KEPT) -> int:
    """Keep a message; return how many older ones were dropped to make room. Raises redis.RedisError."""
    head = json.dumps({"queue": queue, "reason": reason[:LONGEST_REASON], "form": "raw"})
    keys = {"messages": FleetKeys().dead_messages()}
    return int(script("dead_message")(client, keys, {"head": head, "raw": raw, "most": most}))


def newest(client: redis.Redis, limit: int) -> tuple[list[DeadMessage], int]:
    """Return the `limit` newest messages, newest first, and the number of all."""
    return newest_in(client, FleetKeys().dead_messages(), parse, limit)[::2]


def replay(
    client: redis.Redis, put_back: Callable[[DeadMessage], None], wanted: Callable[[DeadMessage], bool], limit: int | None
) -> Cleared:
    """Put messages back, oldest first: each is queued before it is removed here. Raises the errors of `put_back`."""
    key = FleetKeys().dead_messages()

    def each(chosen: list[DeadMessage]) -> int:
        done = 0
        for one in chosen:
            put_back(one)
            done += client.lrem(key, 1, one.raw)  # type: ignore[arg-type]  # bytes are right; by value: the oldest may go
        return done

    return clear(client, key, parse, each, wanted, limit)


def purge(client: redis.Redis, wanted: Callable[[DeadMessage], bool]) -> Cleared:
    """Forget messages for good. Safe when it is repeated."""
    return purge_list(client, FleetKeys().dead_messages(), parse, wanted)


def parse(raw: bytes, place: int) -> DeadMessage | None:
    """Return the entry, or None for one that Trawl did not write."""
    return entry_of(raw, place, partial(_message, raw))


def _message(raw: bytes, head: dict[str, Any], others: dict[str, Any]) -> DeadMessage:
    return DeadMessage(at_s=head["at_ms"] / 1000, queue=str(head["queue"]), reason=str(head["reason"]), raw=raw, **others)
