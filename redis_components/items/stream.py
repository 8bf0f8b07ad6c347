"""The item stream as its writer sees it: read in place, store, then settle. A writer that dies in between loses nothing.

    stream = ItemStream(client, CrawlKeys.for_spider("forum_detail"))
    token = new_token()
    if stream.lock(token) is not Lock.BUSY:
        payloads = stream.peek(1000)
        ...                                                     # store them and commit
        stream.settle(token, len(payloads), bad=[], done=[])    # only now they leave Redis

Between `peek` and `settle` items are in both places: after a crash they are stored once more, so storing has to be idempotent.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple, cast

import msgspec
import redis

from redis_components.keys import CrawlKeys
from redis_components.server.scripts import script

LOCK_S = 30.0


class Refusal(NamedTuple):
    """An item of a batch that its consumer cannot take: its place in the batch, from 0, and why."""

    place: int
    reason: str


class Lock(StrEnum):
    """The outcome of acquiring the writer's lock."""

    ACQUIRED = "acquired"  # ours now; batches count from the start
    RENEWED = "renewed"  # it was ours already
    BUSY = "busy"  # another writer has it


class Settled(StrEnum):
    """The outcome of settling a batch."""

    SETTLED = "settled"  # out of the stream, once
    LOCK_LOST = "lock_lost"  # nothing changed: another writer may be at this batch


def new_token() -> str:
    """Return a token for one writer's lock. Never use one twice: an old call on its way could be taken for a new one."""
    return secrets.token_hex(8)


class ItemStream:
    """One spider's item stream, for one writer at a time. Not for use by two threads; `client` must not decode responses.

    Methods raise `redis.RedisError` when Redis does not answer.

    `lock_s` is how long a writer that died keeps others away; it has to be longer than storing one batch takes.
    """

    def __init__(self, client: redis.Redis, keys: CrawlKeys, *, lock_s: float = LOCK_S) -> None:
        self.keys = keys
        self.client = client
        self.writer_key, self.part_key = keys.writer(), keys.item_part()
        self.lock_s = lock_s
        self._settled = 0  # number of the last settled batch under the present lock

    def __len__(self) -> int:
        """Return the number of items that wait."""
        return int(self.client.llen(self.keys.item_stream()))

    def lock(self, token: str) -> Lock:
        """Take the writer's lock, or keep it. After `ACQUIRED`, a batch read before must not be settled: read it again."""
        held = Lock(self._run("writer_lock", {"writer": self.writer_key}, {"token": token, "ttl_ms": int(self.lock_s * 1000)}))
        if held is Lock.ACQUIRED:
            self._settled = 0
        return held

    def unlock(self, token: str) -> None:
        """Give the lock back; nothing happens when it is not ours any more."""
        self._run("writer_unlock", {"writer": self.writer_key}, {"token": token})

    def peek(self, n: int) -> list[bytes]:
        """Return the oldest `n` items at most, oldest first; they stay where they are."""
        return cast("list[bytes]", self.client.lrange(self.keys.item_stream(), 0, n - 1))

    def settle(self, token: str, n: int, bad: Sequence[Refusal], done: Sequence[str]) -> Settled:
        """Take the first `n` items out of the stream, in one step with its consequences; keep the lock.

        `bad` names the items that are refused: they are kept as they are, with the reason, until they are replayed or purged
        (`refused_items`). `done` holds the task ids (`<site>/<forum_id>`) whose pending mark ends. Safe to repeat after a lost
        reply, by redis-py or by the caller: after an exception, the same call again settles the same batch once.
        """
        number = self._settled + 1
        keys = {
            "items": self.keys.item_stream(),
            "writer": self.writer_key,
            "bad": self.keys.bad_items(),
            "pending": self.keys.pending(),
            "part": self.part_key,
        }
        args = {
            "token": token,
            "number": number,
            "count": n,
            "done": msgspec.msgpack.encode(list(done)),
            "ttl_ms": int(self.lock_s * 1000),
            "refused": [part for one in bad for part in (one.place, json.dumps(one.reason))],
        }
        outcome = Settled(self._run("settle", keys, args))
        if outcome is Settled.SETTLED:
            self._settled = number
        return outcome

    def _run(self, name: str, keys: dict[str, str], args: dict[str, object]) -> str:
        answer: bytes = script(name)(self.client, keys=keys, args=args)
        return answer.decode()
