"""The consumer groups of an item stream: the items left to each, and its consumers."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import redis

from redis_components.admin.inspector import CrawlRecords
from redis_components.keys import CrawlKeys
from redis_components.server.scripts import script
from redis_components.server.untrusted_values import as_text

from .stream import LOCK_S, ItemStream, Lock, Refusal, Settled

READS_S = 60.0
"""A consumer that has asked for items since so long reads."""


@dataclass(frozen=True, kw_only=True)
class GroupState:
    """One consumer group."""

    name: str
    declared: bool  # the service names it; another one keeps items in Redis just the same
    waiting: int | None  # items that it was not given yet; None: not known to Redis
    pending: int  # items that its consumers were given and have not acknowledged
    oldest_s: float | None  # age of its oldest item that is pending; None: there is none
    readers: int  # consumers that ask for items


def is_stream(client: redis.Redis, keys: CrawlKeys) -> bool:
    """Return True if the items are a Redis stream at the moment."""
    return as_text(client.type(keys.item_stream())) == "stream"


def group_names(client: redis.Redis, keys: CrawlKeys) -> list[str]:
    """Return the names of the existing groups."""
    found: Any = client.xinfo_groups(keys.item_stream()) if is_stream(client, keys) else []
    return [as_text(one["name"]) for one in found]


def forget(client: redis.Redis, service: str, group: str) -> None:
    """Destroy a group of the service's item stream, and take it out of the crawl's record, by which the fleet makes it again."""
    records = CrawlRecords(client)
    record = records.of(service)
    keys = record.keys if record else CrawlKeys.for_spider(service)
    if record and group in keys.item_groups:
        left = tuple(one for one in keys.item_groups if one != group)
        records.write(replace(record, keys=replace(keys, item_groups=left)))
    client.xgroup_destroy(keys.item_stream(), group)


def group_states(client: redis.Redis, keys: CrawlKeys, now: float, *, most: int | None = None) -> list[GroupState]:
    """Return the groups of the item stream, by name; none where it is a list. `now` is Redis's time in epoch s. `most` bounds
    their number, the declared ones first.
    """
    if not is_stream(client, keys):
        return []
    found: Any = client.xinfo_groups(keys.item_stream())
    chosen = sorted(found, key=lambda one: (as_text(one["name"]) not in keys.item_groups, as_text(one["name"])))[:most]
    with client.pipeline(transaction=False) as pipe:
        for group in chosen:
            pipe.xinfo_consumers(keys.item_stream(), group["name"])
            pipe.xpending(keys.item_stream(), group["name"])
        answers = iter(pipe.execute())
    return sorted((_state(keys, group, next(answers), next(answers), now) for group in chosen), key=lambda one: one.name)


def _state(
    keys: CrawlKeys, group: dict[str, Any], consumers: list[dict[str, Any]], pending: dict[str, Any], now: float
) -> GroupState:
    name, oldest = as_text(group["name"]), pending["min"]
    return GroupState(
        name=name,
        declared=name in keys.item_groups,
        waiting=group.get("lag"),
        pending=int(group["pending"]),
        oldest_s=max(0.0, now - int(as_text(oldest).partition("-")[0]) / 1000) if oldest else None,
        readers=sum(int(one["idle"]) <= READS_S * 1000 for one in consumers),
    )


CONSUMER = "trawl"
CLAIM_AFTER_S = 60.0
LOOK_EVERY_S = 5.0
FIELD = b"item"


def tend(client: redis.Redis, keys: CrawlKeys) -> None:
    """Make the groups that the crawl names, and remove the entries that all groups have acknowledged.

    A list of items from before becomes the stream. Crawlers do the same in each exchange. Raises `redis.RedisError`.
    """
    while script("items_tend")(client, keys, args={"groups": list(keys.item_groups)}):
        pass


class ItemGroup(ItemStream):
    """One group of one spider's item stream, for one consumer at a time."""

    def __init__(
        self, client: redis.Redis, keys: CrawlKeys, group: str, *, lock_s: float = LOCK_S, claim_after_s: float = CLAIM_AFTER_S
    ) -> None:
        super().__init__(client, keys, lock_s=lock_s, group=group)
        self._claim_after_ms = int(claim_after_s * 1000)
        self._held: list[bytes] = []  # ids of the batch that was read last, until it is settled
        self._reads_again = True  # what this name was given before comes first
        self._look_at = 0.0
        self._cursor: Any = "0-0"  # where to look on for entries that others have left

    def __len__(self) -> int:
        """Return the number of items that the group has not acknowledged; where Redis does not have it, that of the stream."""
        states = group_states(self.client, self.keys, 0.0)
        one = next((one for one in states if one.name == self.group), None)
        if one is None or one.waiting is None:
            return int(self.client.xlen(self.keys.item_stream())) if states else 0
        return one.waiting + one.pending

    def lock(self, token: str) -> Lock:
        """Take the consumer's lock of this group, or keep it. After `ACQUIRED`, read the last batch again."""
        held = super().lock(token)
        self._reads_again = self._reads_again or held is Lock.ACQUIRED
        return held

    def peek(self, n: int) -> list[bytes]:
        """Return the next batch of `n` items at most: given and not acknowledged, then left by other consumers, then new ones.

        The same batch comes again until it is settled.
        """
        is_due = time.monotonic() >= self._look_at
        entries: list[Any] = []
        if self._held or self._reads_again or is_due:  # also when nothing is known of it: the answer to a read may be lost
            entries = self._read("0", n)
            self._reads_again = bool(entries)
        if is_due and not entries:
            self._look_at = time.monotonic() + LOOK_EVERY_S
            entries = self._claimed(n)
        entries = entries or self._read(">", n)
        gone = [number for number, fields in entries if not fields]
        if gone:  # they were deleted from the stream: nothing is left to keep
            self.client.xack(self.keys.item_stream(), self.group, *gone)
        whole = [(number, fields) for number, fields in entries if fields]
        self._held = [number for number, _ in whole]
        return [fields.get(FIELD, b"") for _, fields in whole]

    def settle(self, token: str, n: int, bad: Sequence[Refusal], done: Sequence[str]) -> Settled:  # noqa: ARG002
        """Acknowledge the batch, its first `n` items, in one step with its consequences; keep the lock.

        `bad` and repeated calls are as in `ItemStream.settle`; a stream has no pending marks that could be `done`.
        """
        ids = msgspec.msgpack.encode([one.decode() for one in self._held[:n]])
        outcome = self._settle(
            "settle_group", token, bad, {"moving": self.keys.items_moving()}, {"group": self.group, "ids": ids}
        )
        self._reads_again = self._reads_again or len(self._held) > n
        self._held = []
        return outcome

    def _read(self, after: str, n: int) -> list[Any]:
        try:
            answer: Any = self.client.xreadgroup(self.group, CONSUMER, {self.keys.item_stream(): after}, count=n)
        except redis.ResponseError as error:
            if not str(error).startswith(("NOGROUP", "WRONGTYPE")):
                raise
            self._make()
            return []
        if isinstance(answer, dict):  # by protocol 3
            answer = [(key, batches[0]) for key, batches in answer.items()]
        return answer[0][1] if answer else []

    def _make(self) -> None:
        """Make the group, or the whole stream, where it is missing: nothing was stored yet, it was removed, or the items are a
        list from before the service named groups.
        """
        tend(self.client, self.keys)
        try:
            self.client.xgroup_create(self.keys.item_stream(), self.group, id="0", mkstream=True)
        except redis.ResponseError as error:
            if not str(error).startswith("BUSYGROUP"):
                raise

    def _claimed(self, n: int) -> list[Any]:
        try:
            answer: Any = self.client.xautoclaim(
                self.keys.item_stream(), self.group, CONSUMER, self._claim_after_ms, start_id=self._cursor, count=n
            )
        except redis.ResponseError as error:
            if not str(error).startswith("NOGROUP"):
                raise
            return []
        self._cursor = answer[0]
        return list(answer[1])
