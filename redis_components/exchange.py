"""What one exchange carries to Redis and back. The grammar is that of `lua/exchange.lua`; its only caller is
`frontier.Frontier`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal, NamedTuple

import msgspec

from .errors import Unserializable
from .keys import CrawlKeys

NO_FILTER = b""
"""Fingerprint of a request that passes the dupefilter whatever it holds."""


class Order(StrEnum):
    """In which order READY requests are leased."""

    PRIORITY = "priority"  # highest priority first; equal priorities first in, first out
    FIFO = "fifo"  # first in, first out; priorities do not matter
    LIFO = "lifo"  # last in, first out; priorities do not matter
    RANDOM = "random"  # shuffled; priorities do not matter
    ADVISED = "advised"  # a queue class of the user's says which is next; else in that of the 8 bytes before each payload


def exact_score(score: float) -> str:
    """A score of a user's own as text. Raises Unserializable for what Redis would refuse in the middle of an exchange."""
    number = float(score)
    if not math.isfinite(number):
        raise Unserializable(f"score: Redis cannot sort by {number}; return a finite number")
    return repr(number)


def score_of(priority: int) -> str:
    """The score of a request: its negated priority, as text.

    Raises Unserializable for a number that Redis would refuse in the middle of an exchange, where nothing is rolled back.
    """
    if not priority:
        return "0"
    try:
        score = -int(priority)
        float(score)
    except (ValueError, OverflowError):  # not a number, or beyond what a double holds
        raise Unserializable("priority: it is beyond what Redis can sort by; use an integer that a double holds") from None
    return str(score)


Lane = Literal["", "later", "backlog"]
"""Where a start task waits: at the first start key, at the one that is read when that is empty, or in front of that one."""


class NewRequest(NamedTuple):
    """A request to store: `fingerprint` (NO_FILTER: always), `score` (`score_of` its priority), `payload`."""

    fingerprint: bytes
    score: str
    payload: bytes


class NextTask(NamedTuple):
    """A start task for the next service: stored only when `token` differs from the last one stored for `id`. `lane`: a
    list beside the first start key.
    """

    id: str
    token: str
    data: bytes
    lane: Lane = ""


class KeyedItem(NamedTuple):
    """An item for a list of its own, in place of the item stream."""

    key: str
    data: bytes


class Park(NamedTuple):
    """A lease to be set aside until the site is not held any more; `lot` is `requests:<site>` or `tasks:<site>`."""

    id: str
    lot: str


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
    """Something leased to this process: a request's payload or a start task's data. Requests sort as in the queue."""

    score: float  # lower ones first; 0 for a start task
    order: bytes  # among equal scores, lower ones first; its ninth byte is the attempts; empty for a start task
    id: str
    data: bytes

    @property
    def attempts(self) -> int:
        """Crawlers that died while they worked on this request."""
        return self.order[8]


class Message(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One exchange, as `exchange.lua` reads it; what is seldom there has a default, and is left out then."""

    owner: str
    number: str
    previous: str  # number of the last exchange whose answer we hold, "" at first
    ttl_ms: int
    max_attempts: int  # deaths of its crawler with which a request or start task is given up
    concurrency: int  # requests that this process works on at once: when it dies, as many of its leases count the attempt
    order: str
    filter: dict[str, Any] | None  # see filters.py; None: the plain set
    want: int  # requests to lease
    want_tasks: int  # start tasks to lease
    suspect_from: int  # attempts from which on a request is tried apart from its like
    trying: bool  # this process holds a request that was at work in several deaths: lease no other one of them
    overtaken: list[str]  # leases that wait although later ones were started: a death does not count for them
    bye: bool  # the owner leaves when it holds no lease any more
    ask_survives: bool  # say whether what Redis holds survives a crash of it
    reclaim: str  # dead owner whose leases this exchange gives back, or ""
    requests: list[str]  # their scores; fingerprints and payloads are blobs
    tasks: list[tuple[str, str] | tuple[str, str, int]]  # ids, tokens, and for a lane the place (from 1) of its list among
    # those after the lots; their data are blobs
    items: int  # how many blobs are items
    keyed_items: list[int]  # places (from 1) of their lists among the keys; their data are blobs
    start_keys: int  # how many of `more_keys` are start keys, or keys in which start tasks wait for their turns
    turn_by: str = ""  # field of a start task whose values take turns; "": none do
    room: dict[str, int] = {}  # for some values of it the most start tasks that are leased
    acks: list[str]
    releases: list[str]
    burials: list[Burial]
    holds: str = ""  # the version of what is held that we know; with another one nothing is leased, parked or put back
    lots: list[str] = []  # lots of parked requests or start tasks that this message speaks of; their lists follow the start keys
    parks: list[tuple[str, int]] = []  # lease and place of its lot (from 1)
    unpark: int = 0  # place of a lot from which to put back, or 0
    claims: list[str]  # orders (hex) of READY requests that a queue class of the user's has chosen
    stats: list[StatChange]
    sizes: list[int]  # bytes of each blob, in the order in which the script reads them


encode = msgspec.msgpack.Encoder().encode
"""The msgpack map that `exchange.lua` unpacks."""


def keys_of(
    keys: CrawlKeys,
    next_keys: CrawlKeys | None,
    owner: str,
    reclaimed: str,
    item_keys: Iterable[str] = (),
    lots: Iterable[str] = (),
    *,
    turns: bool = False,
) -> dict[str, str | list[str]]:
    """The keys that `exchange.lua` touches for `owner`, by the names in its header; `reclaimed` is the dead owner, or `owner`;
    `item_keys` are the lists of items that do not go into the item stream, `lots` those of parked requests that the message
    speaks of; `turns`: start tasks wait for the turns of their sites.
    """
    return {
        "ready": keys.ready(),
        "seen": keys.fingerprints(),
        "leases": keys.leases(owner),
        "owners": keys.owners(),
        "numbers": keys.numbers(),
        "counters": keys.counters(),
        "dead": keys.dead(),
        "start_tasks": keys.start_tasks(),
        "start_deaths": keys.start_deaths(),
        "items": keys.item_stream(),
        "stats": keys.stats_hash(),
        "own_stats": keys.own_stats(owner),
        "next_tasks": next_keys.start_tasks() if next_keys else keys.dead(),  # never written without one
        "next_tokens": (next_keys or keys).start_tokens(),
        "own_gone": keys.gone(owner),
        "dead_leases": keys.leases(reclaimed),
        "dead_gone": keys.gone(reclaimed),
        "holds": keys.holds(),
        "parked": keys.parked(),
        "more_keys": [
            *keys.more_start_urls,
            *(keys.turn_keys if turns else ()),
            *(keys.parked_lot(lot) for lot in lots),
            *item_keys,
        ],
    }


def all_keys(keys: CrawlKeys, next_keys: CrawlKeys | None) -> list[str]:
    """Every key that an exchange may touch, but for the lists of an overridden `item_key`."""
    named = [*keys_of(keys, next_keys, "", "").values(), *([next_keys.later_tasks(), next_keys.backlog()] if next_keys else [])]
    return [key for one in named for key in ([one] if isinstance(one, str) else one)]


class HeldNow(NamedTuple):
    """What is held now: fields and values of the hash of holds, and which lots have entries. `holds.Holds` reads it."""

    fields: dict[bytes, bytes]
    lots: list[str]

    @property
    def version(self) -> str:
        """Another one after each change; "" before the first one."""
        return self.fields.get(b"version", b"").decode()


@dataclass(frozen=True, kw_only=True, slots=True)
class Reply:
    """The answer to one exchange; counts are taken after everything was applied."""

    outcome: str  # "applied", "repeated", "fenced", "layout" or "filter"
    layout: str  # version of the keys in Redis; "filter": the form of the dupefilter there
    last_applied: int  # fenced: number of the last exchange of this owner that Redis knows
    leases: list[Lease]
    tasks: list[Lease]
    duplicates: list[int]  # places (from 0) of the requests that were known already
    ready: int
    withheld: int  # of these, requests that are not for us now because we are `trying` another one
    leased: int  # requests leased, by all owners
    leased_tasks: int  # start tasks leased, by all owners
    waiting: int  # start tasks that wait
    expired: str  # an owner that counts as dead and may be reclaimed, or ""
    lost: int  # acks, releases and burials of leases that were not ours any more
    full: bool  # Redis is out of memory: nothing was leased
    survives: bool | None  # a crash, by an append-only file or by replicas that take over; None: not asked, or Redis does not say
    forgotten: bytes  # time of the last removal of single requests from the dupefilter, in ms; b"" if long ago
    parked: int  # requests set aside for a site that is held
    parked_tasks: int  # start tasks, likewise
    left: int  # entries in the lot from which to put back
    held: HeldNow | None  # None: what we know is right


def decode(raw: list[Any]) -> Reply:
    """The reply of `exchange.lua`."""
    outcome, layout, last_applied, leases, tasks, duplicates, ready, withheld, leased, leased_tasks, waiting, *rest = raw
    expired, lost, full, survives, forgotten, parked, parked_tasks, left, held = rest
    return Reply(
        outcome=outcome.decode(),
        layout=layout.decode(),
        last_applied=last_applied,
        leases=[Lease(float(leases[i + 1]), leases[i + 2], leases[i].decode(), leases[i + 3]) for i in range(0, len(leases), 4)],
        tasks=[Lease(0.0, b"", tasks[i].decode(), tasks[i + 1]) for i in range(0, len(tasks), 2)],
        duplicates=[place - 1 for place in duplicates],
        ready=ready,
        withheld=withheld,
        leased=leased,
        leased_tasks=leased_tasks,
        waiting=waiting,
        expired=expired.decode(),
        lost=lost,
        full=full == 1,
        survives=None if survives < 0 else survives == 1,
        forgotten=forgotten,
        parked=parked,
        parked_tasks=parked_tasks,
        left=left,
        held=_held(*held) if held else None,
    )


def _held(fields: list[bytes], lots: list[bytes]) -> HeldNow:
    return HeldNow(dict(zip(fields[::2], fields[1::2], strict=True)), [lot.decode("utf-8", "replace") for lot in lots[::2]])
