"""The message of one exchange to Redis, and its answer. Both grammars are those of `lua/frontier/exchange.lua`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

from redis_components.keys import CrawlKeys
from redis_components.server.scripts import script

if TYPE_CHECKING:
    from .outbox import Batch

NO_FILTER = b""
"""Fingerprint of a request that passes the dupefilter without being looked up."""


class QueueOrder(StrEnum):
    """In which order READY requests are leased."""

    PRIORITY = "priority"  # highest priority first; equal priorities first in, first out
    FIFO = "fifo"  # first in, first out; priorities do not matter
    LIFO = "lifo"  # last in, first out; priorities do not matter
    RANDOM = "random"  # shuffled; priorities do not matter
    ADVISED = "advised"  # by a queue class of the user's; else by the 8 bytes before each payload


def as_unicode(text: str) -> str:
    """Return `text` without lone surrogates: pages hold them, messages must not."""
    return text.encode("utf-8", "backslashreplace").decode()


Lane = Literal["", "later", "backlog"]
"""The place of a start task: at the first start key, at the one that is read when that is empty, or in front of that one."""


class NewRequest(NamedTuple):
    """A request to store: `fingerprint` (NO_FILTER: always), `score` (`score_of` its priority), `payload`; the `lane` whose
    limits hold for it, "" where it has none; the time (epoch s) before which it is not leased, 0: none.
    """

    fingerprint: bytes
    score: str
    payload: bytes
    lane: str = ""
    not_before: float = 0.0


class NextTask(NamedTuple):
    """A start task for the next service: stored only when `token` differs from the last one stored for `id`, and in the place of
    the one with that id that waits, if any. `lane`: another list than the first start key. `wide`: it does what one with its id
    that is not wide does, too. `site`: its value of the next service's `turn_by`.
    """

    id: str
    token: str
    data: bytes
    lane: Lane = ""
    wide: bool = False
    site: str = ""


class KeyedItem(NamedTuple):
    """An item for a separate list, in place of the item stream."""

    key: str
    data: bytes


class Park(NamedTuple):
    """A lease to be set aside until the site is not held any more; `lot` is `requests:<site>` or `tasks:<site>`."""

    id: str
    lot: str


class LaneRequeue(NamedTuple):
    """A lease that waits for its turn in a lane: the limits of its site became known after it was stored."""

    id: str
    lane: str


class SiteBackoff(NamedTuple):
    """Back-off for one lane: the site asks to be left alone for `ms`; 0: for an unspecified time; -1: it did not ask, but slows
    down. `rate`: requests per second that this process sends to it, of which all processes are to send less; 0: as many.
    `single`: no other refusal was seen of late, so it counts only where more was tried than the site is known to take.
    """

    lane: str
    ms: int
    rate: float = 0.0
    single: bool = False


class DeadLetter(NamedTuple):
    """A lease that is given up, and why; `again`: only once its attempts are spent, of which this is one."""

    id: str
    reason: str
    again: bool = False


class StatChange(NamedTuple):
    """A change of a stat: `how` is add, max or min (shared by all processes, a number) or set (this process's own, any text)."""

    how: Literal["add", "set", "max", "min"]
    field: str
    value: str


class SendSlot(NamedTuple):
    """The time at which a leased request of a lane is to be sent."""

    lane: str
    wait_s: float | None  # from the time at which Redis decided; None: at any time
    late_s: (
        float  # by how much it may be later: little where a rate is promised to the site, by any where only complaints set one
    )


class Lease(NamedTuple):
    """Something leased to this process: a request's payload or a start task's data. Requests sort as in the queue."""

    score: float  # lower ones first; 0 for a start task
    order: bytes  # among equal scores, lower ones first; its ninth byte is the attempts; empty for a start task
    id: str
    data: bytes
    lane: str = ""  # whose limits have been applied to it; "": none
    until: float = math.inf  # s of the clock from which it is too late to send it

    @property
    def attempts(self) -> int:
        """Crawlers that died while they worked on this request."""
        return self.order[8]


class LeaseDemand(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The leases that a message asks for, and the state by which they were chosen."""

    want: int  # requests to lease
    want_tasks: int  # start tasks to lease
    want_paced: int = 0  # requests to lease from lanes
    full: list[str] = []  # but not from these lanes
    room: dict[str, int] = {}  # for some values of `turn_by` the most start tasks that are leased
    trying: bool  # this process holds a request that was at work in several deaths: lease no other one of them
    overtaken: list[str]  # leases that wait although later ones were started: a death does not count for them
    bye: bool  # the owner leaves when it holds no lease any more
    ask_survives: bool  # ask if Redis's data survives a crash of it
    holds: str = ""  # the version of the holds that we have; with another one nothing is leased, parked or put back
    unpark: str = ""  # lot from which to put back, the first one in `lots`
    limits: str = ""  # the version of the limits that we know
    max_items: int = 0  # items, waiting and refused, from which on nothing is leased; 0: any number
    max_item_bytes: int = 0  # the same by the memory that they take


class Message(LeaseDemand, kw_only=True, omit_defaults=True):
    """One exchange, as `exchange.lua` reads it; rare fields have a default, and are left out then. See `FrontierConfig`, too."""

    owner: str
    number: str
    previous: str  # number of the last exchange whose answer we hold, "" at first
    ttl_ms: int
    max_attempts: int
    concurrency: int  # when this process dies, as many of its leases count the attempt
    order: str
    filter: dict[str, Any] | None  # see filters.py; None: the plain set
    suspect_from: int
    reclaim: str  # dead owner whose leases this exchange gives back, or ""
    requests: list[str]  # their scores; fingerprints and payloads are blobs
    tasks: list[tuple[str, str, int, int, str]]  # id, token, place of a lane's list after the lots or 0, 1: wide, site; no data
    newest_fields: tuple[str, ...] = ()
    most_fed: int
    items: int  # how many blobs are items
    keyed_items: list[int]  # places (from 1) of their lists among the keys; their data are blobs
    start_keys: int  # how many of `more_keys` are start keys, or keys in which start tasks wait for their turns
    turn_by: str = ""
    acks: list[str]
    releases: list[str]
    unsent: list[str] = []  # requests of lanes that are not sent, before their leases end: their times are free for others
    burials: list[DeadLetter]
    lots: list[str] = []  # lots of parked requests or start tasks in this message; their lists follow the start keys
    parks: list[tuple[str, int]] = []  # lease and place of its lot (from 1)
    paces: list[tuple[int, str, int]] = []  # of some requests: place (from 1), lane or "", ms before which it is not leased or 0
    shelves: list[LaneRequeue] = []
    waits: list[SiteBackoff] = []
    quota: str = ""
    claims: list[str]  # orders (hex) of READY requests that a queue class of the user's has chosen
    stats: list[StatChange]
    sizes: list[int]  # bytes of each blob, in the order in which the script reads them


OF_CONFIG = ("ttl_ms", "max_attempts", "concurrency", "order", "suspect_from", "newest_fields", "most_fed", "turn_by", "quota")
OF_BATCH = ("acks", "releases", "unsent", "burials", "shelves", "waits", "claims", "stats")

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
    """Return the keys that `exchange.lua` touches for `owner`, by the names in its header; `reclaimed` is the dead owner, or
    `owner`; `item_keys` are the lists of items that do not go into the item stream, `lots` the lots of parked requests in the
    message; `turns`: start tasks wait for the turns of their sites.
    """
    fed = next_keys or keys
    return script("exchange").named(
        keys,
        seen=keys.fingerprints(),
        leases=keys.leases(owner),
        items=keys.item_stream(),
        stats=keys.stats_hash(),
        own_stats=keys.own_stats(owner),
        own_gone=keys.gone(owner),
        dead_leases=keys.leases(reclaimed),
        dead_gone=keys.gone(reclaimed),
        dead_own_stats=keys.own_stats(reclaimed),
        next_tasks=next_keys.start_tasks() if next_keys else keys.dead(),  # never written without one
        next_tokens=fed.start_tokens(),
        next_turns=fed.fed_turns,
        next_ids=fed.fed_ids(),
        next_waiting=fed.fed_waiting(),
        next_overflow=fed.overflow(),
        next_overflow_order=fed.overflow_order(),
        more_keys=[
            *keys.more_start_urls,
            *(keys.turn_keys if turns else ()),
            *(keys.parked_lot(lot) for lot in lots),
            *item_keys,
        ],
    )


def own_lists(batch: Batch, lanes: Mapping[Lane, str]) -> dict[str, int]:
    """Return the lists of one message alone, with their places (from 1): of items, and `lanes` of tasks that may wait."""
    lists = dict.fromkeys(item.key for item in batch.keyed_items)
    lists |= dict.fromkeys(lanes[task.lane] for task in batch.tasks if task.lane)
    return {key: place for place, key in enumerate(lists, 1)}


def all_keys(keys: CrawlKeys, next_keys: CrawlKeys | None) -> list[str]:
    """Return every key that an exchange may touch, but for the lists of an overridden `item_key`."""
    named = [*keys_of(keys, next_keys, "", "").values(), *([next_keys.later_tasks(), next_keys.backlog()] if next_keys else [])]
    return [key for one in named for key in ([one] if isinstance(one, str) else one)]


class HeldNow(NamedTuple):
    """The present holds: fields and values of the hash of holds, and the lots with entries. `holds.Holds` reads it."""

    fields: dict[bytes, bytes]
    lots: list[str]

    @property
    def version(self) -> str:
        """Another one after each change; "" before the first one."""
        return _text(self.fields.get(b"version", b""))


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to one exchange; counts are taken after everything was applied."""

    outcome: str
    """"applied", "repeated", "fenced", "layout" or "filter"."""
    layout: str = ""
    """Version of the keys in Redis; "filter": the form of the dupefilter there."""
    last_applied: int = 0
    """Fenced: number of the last exchange of this owner that Redis knows."""
    leases: list[Lease] = []
    tasks: list[Lease] = []
    duplicates: list[int] = []
    """Places (from 0) of the requests that were known already."""
    ready: int = 0
    withheld: int = 0
    """Of these, requests that are not for us now because we are `trying` another one."""
    leased: int = 0
    """Requests leased, by all owners."""
    leased_tasks: int = 0
    """Start tasks leased, by all owners."""
    waiting: int = 0
    """Start tasks that wait."""
    expired: str = ""
    """An owner that counts as dead and may be reclaimed."""
    lost: int = 0
    """Acks, releases, parkings and burials of leases that were not ours any more."""
    full: bool = False
    """Redis is out of memory: nothing was leased."""
    survives: bool | None = None
    """A crash, by an append-only file or by replicas that take over; None: not asked, or not known."""
    unsorted: bool = False
    """Start tasks wait that have not been sorted by their turns."""
    parked: int = 0
    """Requests set aside for a site that is held."""
    parked_tasks: int = 0
    """Start tasks, in the same form."""
    left: int = 0
    """Entries in the lot from which to put back."""
    items: int = 0
    """Items that wait or were refused, where the message bounds their number."""
    backed_up: bool = False
    """They are so many, or so large, that nothing was leased."""
    held: HeldNow | None = None
    """None: what we know is right."""
    lanes: int = 0
    """Lanes that hold requests; one more where requests wait for their time."""
    paced: dict[str, SendSlot] = {}
    """By lease id."""
    now: int = 0
    """The time of Redis in ms, from which those count."""
    closing: dict[str, float] = {}
    """Lane -> seconds from now at which its quiet hours begin, of lanes of which something was leased."""
    limits: dict[bytes, bytes] | None = None
    """Limits by lane, and their version; None: what we know is right."""


def decode(raw: list[Any]) -> Reply:
    """Return the reply of `exchange.lua`: names and values; 0, empty and false ones are left out."""
    parts: dict[bytes, Any] = dict(zip(raw[::2], raw[1::2], strict=True))
    fields: dict[str, Any] = {}
    for name, value in parts.items():
        read = _READ.get(name)
        if read is not None:
            fields[name.decode()] = read(value)
    if b"held" in parts:
        flat = parts[b"held"]
        held = dict(zip(flat[::2], flat[1::2], strict=True))
        fields["held"] = HeldNow(held, [_text(lot) for lot in parts.get(b"lots", [])[::2]])
    if paced := fields.get("paced"):
        fields["leases"] = [
            lease._replace(lane=paced[lease.id].lane) if lease.id in paced else lease for lease in fields["leases"]
        ]
    return Reply(**fields)


def _text(value: bytes) -> str:
    """Return the text of bytes that other processes may have written, as far as they can be read."""
    return value.decode("utf-8", "replace")


def _leases(flat: list[Any]) -> list[Lease]:
    return [Lease(float(flat[i + 1]), flat[i + 2], flat[i].decode(), flat[i + 3]) for i in range(0, len(flat), 4)]


def _paced(flat: list[Any]) -> dict[str, SendSlot]:
    rows = (flat[n : n + 4] for n in range(0, len(flat), 4))
    return {
        lease.decode(): SendSlot(_text(lane), at / 1000 if at >= 0 else None, late / 1000 if late >= 0 else math.inf)
        for lease, lane, at, late in rows
    }


_READ: dict[bytes, Callable[[Any], Any]] = {
    b"outcome": bytes.decode,
    b"layout": _text,
    b"expired": _text,
    b"leases": _leases,
    b"tasks": lambda flat: [Lease(0.0, b"", id_.decode(), data) for id_, data in zip(flat[::2], flat[1::2], strict=True)],
    b"duplicates": lambda places: [place - 1 for place in places],
    b"full": bool,
    b"backed_up": bool,
    b"unsorted": bool,
    b"paced": _paced,
    b"closing": lambda flat: {_text(lane): ms / 1000 for lane, ms in zip(flat[::2], flat[1::2], strict=True)},
    b"limits": lambda flat: dict(zip(flat[::2], flat[1::2], strict=True)),
    b"survives": lambda text: text == b"yes",
    **dict.fromkeys(
        (b"last_applied", b"ready", b"withheld", b"leased", b"leased_tasks", b"waiting", b"lost", b"parked", b"parked_tasks"), int
    ),
    **dict.fromkeys((b"left", b"items", b"lanes", b"now"), int),
}
