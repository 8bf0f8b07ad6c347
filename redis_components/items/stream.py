"""The item stream as its writer sees it: read in place, store, then settle. A writer that dies in between loses nothing.

    stream = ItemStream(client, CrawlKeys.for_spider("forum_detail"))
    token = new_token()
    if stream.lock(token) is not Lock.BUSY:
        payloads = stream.peek(1000)
        ...                                                     # store them and commit
        stream.settle(token, len(payloads), bad=[], done=[])    # only now they leave Redis

Between `peek` and `settle` items are in both places: after a crash they are stored once more, so storing has to be idempotent.
Items that were refused wait in a separate list: `newest`, `replay`, `purge`.
"""

from __future__ import annotations

import json
import logging
import secrets
import threading
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any, NamedTuple, TypeVar, cast

import msgspec
import redis

from redis_components.admin.dead_letters import Cleared, Entry, clear, entry_of, newest_in, purge_list
from redis_components.keys import CrawlKeys
from redis_components.server.scripts import is_servers_state, retried, script

T = TypeVar("T")

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


def by_halves(store: Callable[[Sequence[T]], str | None], items: Sequence[T]) -> list[tuple[T, str]]:
    """Store items at once, or by halves where `store` returns why it cannot. Return each refused one with the reason."""
    if not items or (reason := store(items)) is None:
        return []
    if len(items) == 1:
        return [(items[0], reason)]
    half = len(items) // 2
    return by_halves(store, items[:half]) + by_halves(store, items[half:])


class PartNote(msgspec.Struct, frozen=True, kw_only=True):
    """The part that a consumer is about to write: the first `count` items that wait, by their digest."""

    name: str
    count: int
    digest: str


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
        held = Lock(self._run("writer_lock", {}, {"token": token, "ttl_ms": int(self.lock_s * 1000)}))
        if held is Lock.ACQUIRED:
            self._settled = 0
        return held

    def unlock(self, token: str) -> None:
        """Give the lock back; nothing happens when it is not ours any more."""
        self._run("writer_unlock", {}, {"token": token})

    def peek(self, n: int) -> list[bytes]:
        """Return the oldest `n` items at most, oldest first; they stay where they are."""
        return cast("list[bytes]", self.client.lrange(self.keys.item_stream(), 0, n - 1))

    def settle(self, token: str, n: int, bad: Sequence[Refusal], done: Sequence[str]) -> Settled:
        """Take the first `n` items out of the stream, in one step with its consequences; keep the lock.

        `bad` names the items that are refused: they are kept as they are, with the reason, until they are replayed or purged.
        `done` holds the task ids (`<site>/<forum_id>`) whose pending mark ends. Safe to repeat after a lost reply, by redis-py or
        by the caller: after an exception, the same call again settles the same batch once.
        """
        number, keys = self._settled + 1, self.keys
        args = {
            "token": token,
            "number": number,
            "count": n,
            "done": msgspec.msgpack.encode(list(done)),
            "ttl_ms": int(self.lock_s * 1000),
            "refused": [part for one in bad for part in (one.place, json.dumps(one.reason))],
        }
        named = {"items": keys.item_stream(), "bad": keys.bad_items(), "pending": keys.pending(), "part": self.part_key}
        outcome = Settled(self._run("settle", named, args))
        if outcome is Settled.SETTLED:
            self._settled = number
        return outcome

    def noted(self) -> PartNote | None:
        """Return the part that was begun and not settled; None where there is none, or none that can be read."""
        try:
            return msgspec.json.decode(self.client.get(self.part_key) or b"", type=PartNote)
        except msgspec.DecodeError:
            return None

    def note(self, token: str, note: PartNote) -> bool:
        """Note the next part in Redis until `settle` removes the note; False where the lock `token` is lost."""
        return bool(self._run("part_note", {"part": self.part_key}, {"token": token, "note": msgspec.json.encode(note)}))

    def _run(self, name: str, keys: dict[str, str], args: dict[str, object]) -> Any:
        answer = script(name)(self.client, {"writer": self.writer_key, **keys}, args)
        return answer.decode() if isinstance(answer, bytes) else answer


def parse(raw: bytes, place: int) -> Entry | None:
    """Return the refused item, or None for an entry that Trawl did not write."""
    return entry_of(raw, place, lambda head, others: Entry(at_s=float(head["at"]), reason=str(head["reason"]), **others))


def newest(client: redis.Redis, keys: CrawlKeys, limit: int) -> tuple[list[Entry], int]:
    """Return the `limit` newest entries, newest first, and the number of all."""
    return newest_in(client, keys.bad_items(), parse, limit)[::2]


def replay(client: redis.Redis, keys: CrawlKeys, *, limit: int | None = None, reason: str = "") -> Cleared:
    """Append items to the item stream again, oldest first, for the consumer to try once more.

    At most `limit` of them, only those whose reason contains `reason` (in any case). Safe next to crawlers, consumers and other
    replays, and when it is repeated: each item is in the stream or in the list, and never in both.
    """

    def put_back(chosen: list[Entry]) -> int:
        operands = [part for entry in chosen for part in (entry.place, entry.sha)]
        return int(script("items_replay")(client, keys, {"chosen": operands}))

    return clear(client, keys.bad_items(), parse, put_back, lambda entry: entry.is_over(reason), limit)


def purge(client: redis.Redis, keys: CrawlKeys, *, before_s: float | None = None, reason: str = "") -> Cleared:
    """Forget refused items from before `before_s` (epoch seconds; None: all) for good. Safe when it is repeated."""
    return purge_list(client, keys.bad_items(), parse, lambda entry: entry.is_over(reason, before_s))


logger = logging.getLogger(__name__)


def give_back(release: Callable[[], object], name: str, *, held_s: float) -> None:
    """Call `release`, which may be repeated; where Redis does not take it, a thread does until the lock expires after `held_s`.

    The next round of a task runs in another process of the pool as often as not, and would find the lock taken until then.
    """
    try:
        release()
    except redis.RedisError as error:
        logger.warning("%s could not be given back: %s", name, error)
        if is_servers_state(error):  # else it expired, and another process may have it
            threading.Thread(target=_again, args=(release, name, held_s), daemon=True).start()


def _again(release: Callable[[], object], name: str, held_s: float) -> None:
    try:
        retried(release, held_s)
    except redis.RedisError as error:
        logger.debug("%s is not given back: %s", name, error)
