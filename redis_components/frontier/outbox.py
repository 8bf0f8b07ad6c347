"""The entries that a crawler process has yet to send to Redis, in their order; and the phases of its crawl."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Literal, get_args

from .messages import DeadLetter, KeyedItem, LaneRequeue, NewRequest, NextTask, Park, SiteBackoff, StatChange
from .transport import Clock

Kind = Literal[
    "requests", "tasks", "items", "keyed_items", "acks", "releases", "unsent", "shelves", "waits", "parks", "burials", "claims"
]
TASK_COST = 4
"""Entries of another kind for which Redis needs as long as for a start task, which replaces the one with its id that waits."""
WRITES: tuple[Kind, ...] = ("requests", "tasks", "items", "keyed_items")
"""Kinds that must not be lost; the other kinds are about leases, which end with their owner."""

KINDS: tuple[Kind, ...] = get_args(Kind)


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
        return self.writes or any(getattr(self, kind) for kind in KINDS)

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


class Phase(IntEnum):
    """The phases in their order; a process never goes back to an earlier one."""

    JOINING = 0
    """It stores the entries that it gets, and leases nothing."""
    LEASING = 1
    """It crawls."""
    CLOSING = 2
    """It leases nothing more and gives unstarted requests back; pages at work are stored."""
    LEAVING = 3
    """It leaves as soon as everything is stored and safe."""
    STOPPED = 4
    """It exchanges no more."""


class Timer:
    """Calls `ring` once for any number of wishes, at the soonest of their times."""

    def __init__(self, clock: Clock, ring: Callable[[], None]) -> None:
        self._clock = clock
        self._ring = ring
        self._due = math.inf
        self._cancel: Callable[[], None] | None = None

    def set(self, due: float, now: float) -> None:
        """Ring at `due` (s of the clock, at which it is `now`), unless it rings before."""
        if self._cancel is not None:
            if due >= self._due:
                return
            self._cancel()
        self._due = due
        self._cancel = self._clock.call_later(due - now, self._rings)

    def cancel(self) -> None:
        """Do not ring. Cancelling twice is allowed."""
        if self._cancel is not None:
            self._cancel()
            self._cancel = None

    def _rings(self) -> None:
        self._cancel = None
        self._ring()


class WriteJournal:
    """The batches of the exchanges answered within `keep_s` seconds."""

    def __init__(self, keep_s: float) -> None:
        self._keep_s = keep_s
        self._entries: deque[tuple[float, int, Batch]] = deque()

    def remember(self, now: float, number: int, batch: Batch) -> None:
        """Keep the writes of exchange `number`, answered at `now`; older ones than `keep_s` are forgotten."""
        if batch.writes:
            self._entries.append((now, number, batch))
        while self._entries and self._entries[0][0] < now - self._keep_s:
            self._entries.popleft()

    def replay(self, known: int, now: float, number: int, batch: Batch) -> list[Batch]:
        """Remove and return, however old (Redis may have been away for long), what a Redis lacks that knows all exchanges up to
        `known`; `batch` is that of exchange `number`, just refused at `now`. The rest is kept: Redis may come back older yet.
        """
        self._entries.append((now, number, batch))
        lacking = [one for _, of, one in self._entries if of > known and one.writes]
        self._entries = deque(entry for entry in self._entries if entry[1] <= known and entry[2].writes)
        return lacking

    def __bool__(self) -> bool:
        return bool(self._entries)


class ShutdownSequence:
    """Waits until the last entries are safe: with an append-only file a Redis that crashes loses its last second, with a replica
    that takes over the entries that it had not received yet, and no process would be left to send them again. So a process stays
    for a window of time after its last entries were confirmed.
    """

    def __init__(self, window_s: float) -> None:
        self._window_s = window_s
        self._survives: bool | None = None
        self._last_carried = -math.inf

    @property
    def asks(self) -> bool:
        """It matters if Redis's data survives a crash, and is not known yet. Where Redis does not report it, it does."""
        return self._window_s > 0 and self._survives is None

    def answered(self, now: float, *, carried: bool, survives: bool | None) -> None:
        """Note the answer of an exchange that `carried` entries, or none; `survives`: as in `reply.Reply`."""
        if carried:
            self._last_carried = now
        if survives is not None:
            self._survives = survives

    def may_go(self, now: float, *, carries: bool) -> bool:
        """Return True if the exchange that is made now, and `carries` entries or none, may be the last one."""
        return not self._stays or (not carries and now >= self._last_carried + self._window_s)

    def due(self, soonest: float) -> float:
        """Return the time to leave, when there is nothing else to send."""
        return max(soonest, self._last_carried + self._window_s) if self._stays else soonest

    @property
    def _stays(self) -> bool:
        return self._window_s > 0 and self._survives is not False
