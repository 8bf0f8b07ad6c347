"""Items in parts that are each written as a whole, as objects in a store that cannot append.

The items of the next part, and its name, are noted in Redis before it is written, and the note ends in the step in which the
items leave Redis. After a consumer that is killed between the two, the next one writes the same items under the same name, over
the old object: no item is lost, and none is in two parts.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import Protocol

from redis_components.items.groups import ItemGroup, ItemParts, PartNote
from redis_components.items.stream import ItemStream

from .sink import Item, Sink

MOST_ITEMS = 5_000
FIRST_ITEMS = 500  # of the first part: how large the items are is not known yet
MOST_BYTES = 16 * 1024 * 1024
"""Most bytes of a part, which is in memory and has to be written while the consumer's lock lives."""
DEFAULT_MAX_AGE_S = 60.0
"""Longest wait of a part for more items."""


class PartStore(Protocol):
    """A place that keeps whole parts."""

    def put(self, name: str, items: Sequence[Item]) -> dict[int, str]:
        """Keep a part for good, in place of one of that name; returns and raises as `Sink.write`."""


class Parts(Sink):
    """A sink that writes parts to a store, and selects the next items."""

    lock_s = 60.0

    def __init__(self, store: PartStore, *, max_bytes: int = 0, max_age_s: float = 0.0, at_once: bool = False) -> None:
        self._store = store
        self._most_bytes = min(max_bytes or MOST_BYTES, MOST_BYTES)
        self._within_s = max_age_s or DEFAULT_MAX_AGE_S
        self._at_once = at_once
        self._most = FIRST_ITEMS
        self._since: float | None = None  # some items wait
        self._name = ""

    def peek(self, stream: ItemStream | ItemGroup, token: str) -> list[bytes]:
        """Return the items of the next part, noted under the lock `token`; none while it is worth waiting for more."""
        notes = ItemParts(stream)
        if note := notes.noted():
            payloads = stream.peek(note.count)
            if len(payloads) == note.count and _digest(payloads) == note.digest:
                self._name = note.name
                return payloads
        if not self._is_due(stream):
            return []
        payloads = self._cut(stream.peek(self._most))
        if not payloads:
            return []
        digest = _digest(payloads)
        self._name = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{digest[:16]}"
        if not notes.note(token, PartNote(name=self._name, count=len(payloads), digest=digest)):
            return []  # the lock is lost: the part is another consumer's
        self._since = None
        return payloads

    def write(self, items: Sequence[Item]) -> dict[int, str]:
        """Write the part that was peeked at last."""
        return self._store.put(self._name, items)

    def _is_due(self, stream: ItemStream | ItemGroup) -> bool:
        if self._at_once:
            return True
        waiting = len(stream)
        if not waiting:
            self._since = None
            return False
        self._since = self._since or time.monotonic()
        return waiting >= self._most or time.monotonic() - self._since >= self._within_s

    def _cut(self, payloads: list[bytes]) -> list[bytes]:
        """Return as many items as a part may have, at least one; the next part is sized by them."""
        size = count = 0
        for payload in payloads:
            if count and size + len(payload) > self._most_bytes:
                break
            size += len(payload) + 1
            count += 1
        if count:
            self._most = max(1, min(MOST_ITEMS, self._most_bytes * count // size))
        return payloads[:count]


def _digest(payloads: Sequence[bytes]) -> str:
    made = sha256()
    for payload in payloads:
        made.update(b"%d:%b" % (len(payload), payload))
    return made.hexdigest()
