"""The entries that a crawler process has yet to send to Redis, in the order in which they came up."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from .messages import DeadLetter, KeyedItem, LaneRequeue, NewRequest, NextTask, Park, SiteBackoff, StatChange

Kind = Literal[
    "requests", "tasks", "items", "keyed_items", "acks", "releases", "unsent", "shelves", "waits", "parks", "burials", "claims"
]
TASK_COST = 4
"""Entries of another kind for which Redis needs as long as for a start task, which replaces the one with its id that waits."""
WRITES: tuple[Kind, ...] = ("requests", "tasks", "items", "keyed_items")
"""Kinds that must not be lost; the other kinds are about leases, which end with their owner."""

KINDS: tuple[Kind, ...] = (*WRITES, "acks", "releases", "unsent", "shelves", "waits", "parks", "burials", "claims")


@dataclass(kw_only=True, slots=True)
class Batch:
    """The entries of one exchange."""

    requests: list[NewRequest] = field(default_factory=list)
    tasks: list[NextTask] = field(default_factory=list)
    items: list[bytes] = field(default_factory=list)
    keyed_items: list[KeyedItem] = field(default_factory=list)
    acks: list[str] = field(default_factory=list)
    releases: list[str] = field(default_factory=list)
    unsent: list[str] = field(default_factory=list)
    shelves: list[LaneRequeue] = field(default_factory=list)
    waits: list[SiteBackoff] = field(default_factory=list)
    parks: list[Park] = field(default_factory=list)
    burials: list[DeadLetter] = field(default_factory=list)
    claims: list[str] = field(default_factory=list)
    stats: list[StatChange] = field(default_factory=list)  # not from the outbox: asked for when the exchange is made

    def __bool__(self) -> bool:
        return bool(
            self.writes
            or self.acks
            or self.releases
            or self.unsent
            or self.parks
            or self.burials
            or self.claims
            or self.shelves
            or self.waits
        )

    @property
    def writes(self) -> bool:
        """True when something would be missing, were this batch lost."""
        return bool(self.requests or self.tasks or self.items or self.keyed_items or self.stats)

    def blobs(self) -> list[bytes]:
        """Return the binary parts, in the order in which `exchange.lua` reads them; as one argument they cost a third of the
        client's time for many.
        """
        blobs: list[bytes] = []
        for request in self.requests:
            blobs += (request.fingerprint, request.payload)
        blobs += (task.data for task in self.tasks)
        blobs += self.items
        blobs += (item.data for item in self.keyed_items)
        return blobs


class Outbox:
    """One queue for all kinds: an entry taken from its head never leaves an older one behind, so an ack
    never travels before the children and items of its page.

    `entries` (kind, entry, bytes of payload) is open to the frontier: for each page it is appended to a few times.
    """

    def __init__(self) -> None:
        self.entries: deque[tuple[Kind, Any, int]] = deque()

    def __len__(self) -> int:
        """Return the number of entries that wait."""
        return len(self.entries)

    def take(self, limit: int, max_bytes: int) -> Batch:
        """Remove and return the oldest entries: at most `limit` of them, where a task counts as `TASK_COST`, and no more than
        `max_bytes` of payload unless the first alone has more.
        """
        entries, batch, room, more = self.entries, Batch(), max_bytes, 0
        kinds: dict[Kind, list[Any]] = {kind: getattr(batch, kind) for kind in KINDS}
        for place in range(min(limit, len(entries))):
            kind, entry, size = entries.popleft()
            room -= size
            if kind == "tasks":
                more += TASK_COST - 1
            if (room < 0 or place + more >= limit) and place:
                entries.appendleft((kind, entry, size))
                break
            kinds[kind].append(entry)
        return batch

    def put_first(self, batches: Iterable[Batch]) -> None:
        """Put the writes of `batches` (without entries about leases, which are gone) before everything that
        waits.
        """
        again = [
            entry
            for batch in batches
            for entry in (
                *(("requests", request, len(request.payload)) for request in batch.requests),
                *(("tasks", task, len(task.data)) for task in batch.tasks),
                *(("items", item, len(item)) for item in batch.items),
                *(("keyed_items", item, len(item.data)) for item in batch.keyed_items),
            )
        ]
        self.entries.extendleft(reversed(again))  # type: ignore[arg-type]  # the kinds are literals

    def park_only(self, is_held: Callable[[str], bool]) -> None:
        """Release leases to be parked in a lot that is not held any more."""
        self.entries = deque(
            ("releases", entry.id, size) if kind == "parks" and not is_held(entry.lot) else (kind, entry, size)
            for kind, entry, size in self.entries
        )

    def forget_leases(self) -> None:
        """Drop all but the writes: the leases of the other entries are not ours any more."""
        self.entries = deque(entry for entry in self.entries if entry[0] in WRITES or entry[0] == "waits")
