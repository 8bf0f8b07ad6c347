"""What a crawler process has to tell Redis and has not told yet, in the order in which it came up."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from .exchange import Burial, NewRequest, NextTask, StatChange

Kind = Literal["requests", "tasks", "items", "acks", "releases", "burials"]
WRITES: tuple[Kind, ...] = ("requests", "tasks", "items")
"""What must not be lost; the other kinds speak of leases, which end with their owner."""


@dataclass(kw_only=True, slots=True)
class Batch:
    """What one exchange tells."""

    requests: list[NewRequest] = field(default_factory=list)
    tasks: list[NextTask] = field(default_factory=list)
    items: list[bytes] = field(default_factory=list)
    acks: list[str] = field(default_factory=list)
    releases: list[str] = field(default_factory=list)
    burials: list[Burial] = field(default_factory=list)
    stats: list[StatChange] = field(default_factory=list)  # not from the outbox: asked for when the exchange is made

    def __bool__(self) -> bool:
        return bool(self.writes or self.acks or self.releases or self.burials)

    @property
    def writes(self) -> bool:
        """True when something would be missing, were this batch lost."""
        return bool(self.requests or self.tasks or self.items or self.stats)

    def blobs(self) -> list[bytes]:
        """The binary parts, in the order in which `exchange.lua` reads them; as one argument they cost a third of the client's
        time for many.
        """
        blobs: list[bytes] = []
        for request in self.requests:
            blobs += (request.fingerprint, request.payload)
        blobs += (task.data for task in self.tasks)
        blobs += self.items
        return blobs


class Outbox:
    """One queue for all kinds: what is taken from its head never leaves something behind that came up before it, so an ack
    never travels before the children and items of its page.

    `entries` is open to the frontier, which asks for its length several times a page.
    """

    def __init__(self) -> None:
        self.entries: deque[tuple[Kind, Any]] = deque()

    def __len__(self) -> int:
        """Number of entries that wait."""
        return len(self.entries)

    def take(self, limit: int, max_bytes: int) -> Batch:
        """Remove and return the oldest entries: at most `limit` of them, and no more than `max_bytes` of payload unless the
        first alone has more.
        """
        entries, batch = self.entries, Batch()
        kinds: dict[Kind, list[Any]] = {kind: getattr(batch, kind) for kind in (*WRITES, "acks", "releases", "burials")}
        room = max_bytes
        for _ in range(min(limit, len(entries))):
            kind, entry = entries[0]
            room -= _bytes_of(kind, entry)
            if room < 0 and batch:
                break
            kinds[kind].append(entry)
            entries.popleft()
        return batch

    def put_first(self, batches: Iterable[Batch]) -> None:
        """Put the writes of `batches` (not their acks, releases and burials: those leases are gone) before everything that
        waits.
        """
        again = [(kind, entry) for batch in batches for kind in WRITES for entry in getattr(batch, kind)]
        self.entries.extendleft(reversed(again))

    def forget_leases(self) -> None:
        """Drop acks, releases and burials: the leases they speak of are not ours any more."""
        self.entries = deque(entry for entry in self.entries if entry[0] in WRITES)


def _bytes_of(kind: Kind, entry: Any) -> int:
    if kind == "requests":
        return len(entry.fingerprint) + len(entry.payload)
    if kind == "items":
        return len(entry)
    if kind == "tasks":
        return len(entry.id) + len(entry.token) + len(entry.data)
    return len(entry.id) + len(entry.reason) if kind == "burials" else 0
