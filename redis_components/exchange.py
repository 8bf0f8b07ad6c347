"""What one exchange carries to Redis and back. The grammar is that of `lua/exchange.lua`; its only caller is
`frontier.Frontier`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal, NamedTuple, TypeVar

import msgspec

NO_FILTER = b""
"""Fingerprint of a request that passes the dupefilter whatever it holds."""


class Order(StrEnum):
    """In which order READY requests are leased."""

    PRIORITY = "priority"  # highest priority first; equal priorities first in, first out
    FIFO = "fifo"  # first in, first out; priorities do not matter
    LIFO = "lifo"  # last in, first out; priorities do not matter
    RANDOM = "random"  # shuffled; priorities do not matter


class NewRequest(NamedTuple):
    """A request to store: `fingerprint` (NO_FILTER: always), `score` (-priority as text, exact for any integer that a double
    holds), `payload`.
    """

    fingerprint: bytes
    score: str
    payload: bytes


class NextTask(NamedTuple):
    """A start task for the next service: stored only when `token` differs from the last one stored for `id`."""

    id: str
    token: str
    data: bytes


class Burial(NamedTuple):
    """A lease that is given up, and why."""

    id: str
    reason: str


class StatChange(NamedTuple):
    """A change of a stat: `how` is add, max or min (shared by all processes, a number) or set (this process's own, any text)."""

    how: Literal["add", "set", "max", "min"]
    field: str
    value: str


class Lease(NamedTuple):
    """Something leased to this process: a request's payload or a start task's data."""

    id: str
    data: bytes


class Message(msgspec.Struct, kw_only=True):
    """One exchange, as `exchange.lua` reads it."""

    owner: str
    number: str
    previous: str  # number of the last exchange whose answer we hold, "" at first
    ttl_ms: int
    max_attempts: int  # deaths of its crawler that a request survives
    concurrency: int  # requests that a process works on at once: as many of a dead one's leases count the attempt
    order: str
    want: int  # requests to lease
    want_tasks: int  # start tasks to lease
    bye: bool  # the owner leaves when it holds no lease any more
    reclaim: str  # dead owner whose leases this exchange gives back, or ""
    requests: list[str]  # their scores; fingerprints and payloads are blobs
    tasks: list[tuple[str, str]]  # their ids and tokens; their data are blobs
    items: int  # how many blobs are items
    acks: list[str]
    releases: list[str]
    burials: list[Burial]
    stats: list[StatChange]
    sizes: list[int]  # bytes of each blob, in the order in which the script reads them


T = TypeVar("T")

encode = msgspec.msgpack.Encoder().encode
"""The msgpack map that `exchange.lua` unpacks."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Reply:
    """The answer to one exchange; counts are taken after everything was applied."""

    outcome: str  # "applied", "repeated", "fenced" or "layout"
    leases: list[Lease]
    tasks: list[Lease]
    duplicates: list[int]  # places (from 0) of the requests that were known already
    ready: int
    leased: int  # requests leased, by all owners
    leased_tasks: int  # start tasks leased, by all owners
    waiting: int  # start tasks that wait
    expired: str  # an owner that counts as dead and may be reclaimed, or ""
    lost: int  # acks, releases and burials of leases that were not ours any more


def _pairs(flat: list[bytes]) -> list[Lease]:
    return [Lease(flat[i].decode(), flat[i + 1]) for i in range(0, len(flat), 2)]


def decode(raw: list[Any]) -> Reply:
    """The reply of `exchange.lua`."""
    outcome, leases, tasks, duplicates, ready, leased, leased_tasks, waiting, expired, lost = raw
    return Reply(
        outcome=outcome.decode(),
        leases=_pairs(leases),
        tasks=_pairs(tasks),
        duplicates=[place - 1 for place in duplicates],
        ready=ready,
        leased=leased,
        leased_tasks=leased_tasks,
        waiting=waiting,
        expired=expired.decode(),
        lost=lost,
    )


@dataclass(kw_only=True, slots=True)
class Outbox:
    """What this process has to tell, in the order in which it came up."""

    requests: deque[NewRequest] = field(default_factory=deque)
    tasks: deque[NextTask] = field(default_factory=deque)
    items: deque[bytes] = field(default_factory=deque)
    acks: deque[str] = field(default_factory=deque)
    releases: deque[str] = field(default_factory=deque)
    burials: deque[Burial] = field(default_factory=deque)

    def __len__(self) -> int:
        """Number of entries that wait."""
        return len(self.requests) + len(self.tasks) + len(self.items) + len(self.acks) + len(self.releases) + len(self.burials)

    def take(self, limit: int) -> Outbox:
        """Remove and return at most `limit` entries of each kind.

        An ack may never travel before a child, item or task that came up before it: acks stay behind while any of those does.
        """
        batch = Outbox(
            requests=_take(self.requests, limit),
            tasks=_take(self.tasks, limit),
            items=_take(self.items, limit),
            releases=_take(self.releases, limit),
        )
        if not (self.requests or self.tasks or self.items):
            batch.acks = _take(self.acks, limit)
            batch.burials = _take(self.burials, limit)
        return batch

    def put_first(self, batches: Iterable[Outbox]) -> None:
        """Put the writes of `batches` (not their acks, releases and burials: those leases are gone) before everything that
        waits.
        """
        for batch in reversed(list(batches)):
            self.requests.extendleft(reversed(batch.requests))
            self.tasks.extendleft(reversed(batch.tasks))
            self.items.extendleft(reversed(batch.items))

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

    def forget_leases(self) -> None:
        """Drop acks, releases and burials: the leases they speak of are not ours any more."""
        self.acks.clear()
        self.releases.clear()
        self.burials.clear()


def _take(queue: deque[T], limit: int) -> deque[T]:
    if len(queue) <= limit:
        taken = deque(queue)
        queue.clear()
        return taken
    return deque(queue.popleft() for _ in range(limit))
