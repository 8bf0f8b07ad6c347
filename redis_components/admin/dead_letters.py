"""The DEAD list: requests and start tasks that were given up, kept until they are replayed or purged.

An entry is one line of JSON (`at_ms`, `kind`, `reason`, `score`, of a start task `key`) and the payload, byte for byte. Other
entries are foreign: they are counted and kept.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha1
from typing import Any, TypeVar

import redis

from redis_components.codec import values
from redis_components.errors import CodecError, LayoutError
from redis_components.keys import CrawlKeys
from redis_components.server.scripts import script

BATCH = 500
"""Entries in one call: a few milliseconds of Redis."""
SHOWN_BYTES = 200


class DeadKind(StrEnum):
    """The kind of an entry; the letters are those of `lua/lib/leases.lua`."""

    REQUEST = "r"
    LIST_TASK = "l"  # a start task from a list
    SET_TASK = "s"
    ZSET_TASK = "z"
    MEMBER = "f"  # something in the queue other than a request: it has no place to go back to


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One entry of a list of what was given up or refused."""

    place: int  # from the head of the list, where the oldest ones are
    sha: str
    at_s: float  # epoch seconds of Redis
    reason: str
    payload: bytes

    @property
    def text(self) -> str:
        """The beginning of the payload, for people: printable, on one line."""
        shown = self.payload[:SHOWN_BYTES]
        text = shown.decode("utf-8", "backslashreplace")
        return text if text.isprintable() else repr(shown)

    @property
    def can_go_back(self) -> bool:
        """False for an entry that has no place to go back to."""
        return True

    def is_over(self, reason: str, before_s: float | None = None) -> bool:
        """Return True if the entry is from before `before_s` (None: from any time) and its reason contains `reason`."""
        return (before_s is None or self.at_s < before_s) and reason.casefold() in self.reason.casefold()


@dataclass(frozen=True, kw_only=True)
class DeadEntry(Entry):
    """One request or start task that was given up."""

    kind: DeadKind
    score: str
    key: str  # where a start task came from; "" is the spider's own start key

    @property
    def can_go_back(self) -> bool:
        """False for an entry that never was a request."""
        return self.kind is not DeadKind.MEMBER

    @property
    def url(self) -> str:
        """The URL of the request or start task; the beginning of the payload where that does not show."""
        try:
            fields = values.loads(self.payload) if values.is_ours(self.payload) else json.loads(self.payload)
            url = fields.get("u") or fields["url"]
        except (CodecError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
            url = None
        return url if isinstance(url, str) else self.text


@dataclass(frozen=True, kw_only=True)
class Cleared:
    """The outcome of a replay or a purge."""

    done: int = 0
    foreign: int = 0  # entries that Trawl did not write; kept
    stuck: int = 0  # members of the queue that were not requests; a replay keeps them


E = TypeVar("E", bound=Entry)


def entry_of(raw: bytes, place: int, make: Callable[[dict[str, Any], dict[str, Any]], E]) -> E | None:
    """Return what `make` makes of the JSON in the first line and of the other fields; None for one that Trawl did not write."""
    head, newline, payload = raw.partition(b"\n")
    others = {"place": place, "sha": sha1(raw, usedforsecurity=False).hexdigest(), "payload": payload}
    try:
        return make(json.loads(head), others) if newline else None
    except (ValueError, LookupError, TypeError, ArithmeticError, RecursionError):
        return None


def parse(raw: bytes, place: int) -> DeadEntry | None:
    """Return the entry, or None for one that Trawl did not write."""
    return entry_of(raw, place, _given_up)


def _given_up(head: dict[str, Any], others: dict[str, Any]) -> DeadEntry:
    kind, score = DeadKind(head["kind"]), str(head["score"])
    if kind in (DeadKind.REQUEST, DeadKind.ZSET_TASK) and not math.isfinite(float(score)):
        raise ValueError(score)
    reason, key = str(head.get("reason", "")), str(head.get("key", ""))
    return DeadEntry(at_s=head["at_ms"] / 1000, kind=kind, reason=reason, score=score, key=key, **others)


def newest(client: redis.Redis, keys: CrawlKeys, limit: int) -> tuple[list[DeadEntry], int]:
    """Return the `limit` newest entries, newest first, and the number of foreign ones among those looked at."""
    return newest_in(client, keys.dead(), parse, limit)[:2]


def replay(client: redis.Redis, keys: CrawlKeys, *, limit: int | None = None, reason: str = "") -> Cleared:
    """Put entries back, oldest first: requests among the READY ones, behind their equals, start tasks into their key.

    At most `limit` of them, only those whose reason contains `reason` (in any case). May run next to crawlers and to other
    replays; repeating it does no harm. Raises LayoutError.
    """

    def put_back(chosen: list[DeadEntry]) -> int:
        operands = [part for entry in chosen for part in (entry.place, entry.sha, entry.kind.value, entry.score, entry.key)]
        outcome, count = script("dead_replay")(client, keys, {"chosen": operands})
        if outcome == b"layout":
            raise LayoutError(f"{keys.counters()}: another layout version: replay with the Trawl that crawls there")
        return int(count)

    return clear(client, keys.dead(), parse, put_back, lambda entry: entry.can_go_back and entry.is_over(reason), limit)


def purge(client: redis.Redis, keys: CrawlKeys, *, before_s: float | None = None, reason: str = "") -> Cleared:
    """Forget the entries from before `before_s` (epoch seconds; None: all) whose reason contains `reason`.

    Safe while crawlers run, and when it is repeated.
    """
    return purge_list(client, keys.dead(), parse, lambda entry: entry.is_over(reason, before_s))


def newest_in(client: redis.Redis, key: str, parse: Callable[[bytes, int], E | None], limit: int) -> tuple[list[E], int, int]:
    """Return the newest entries of the list at `key`, the number of foreign ones among those looked at, and that of all."""
    pipe = client.pipeline(transaction=True)
    pipe.llen(key)
    pipe.lrange(key, -max(limit, 1), -1)
    length, raws = pipe.execute()
    first = length - len(raws)
    entries = [parse(raw, first + n) for n, raw in enumerate(raws if limit > 0 else ())]
    known = [entry for entry in reversed(entries) if entry is not None]
    return known, len(entries) - len(known), length


def purge_list(client: redis.Redis, key: str, parse: Callable[[bytes, int], E | None], wanted: Callable[[E], bool]) -> Cleared:
    """Forget the wanted entries of the list at `key`."""

    def forget(chosen: list[E]) -> int:
        operands = [part for entry in chosen for part in (entry.place, entry.sha)]
        return int(script("dead_purge")(client, {"dead": key}, {"chosen": operands}))

    return clear(client, key, parse, forget, wanted, None)


def clear(
    client: redis.Redis,
    key: str,
    parse: Callable[[bytes, int], E | None],
    act: Callable[[list[E]], int],
    wanted: Callable[[E], bool],
    limit: int | None,
) -> Cleared:
    """Walk once over the entries in the list at `key` now; entries added meanwhile come behind them and are left alone.

    `act` takes entries out by their places and returns the number of them that were still there.
    """
    place = done = foreign = stuck = 0
    end = client.llen(key)
    while place < end and (limit is None or done < limit):
        raws: Any = client.lrange(key, place, min(place + BATCH, end) - 1)
        if not raws:
            break
        entries = [parse(raw, place + n) for n, raw in enumerate(raws)]
        chosen = [entry for entry in entries if entry is not None and wanted(entry)]
        if limit is not None:
            chosen = chosen[: limit - done]
        taken = act(chosen) if chosen else 0
        done += taken
        if taken < len(chosen):  # another process takes entries out too: the places have changed
            place = foreign = stuck = 0
            end = min(end - taken, client.llen(key))
            continue
        foreign += entries.count(None)
        stuck += sum(entry is not None and not entry.can_go_back and entry not in chosen for entry in entries)
        place += len(raws) - taken
        end -= taken
    return Cleared(done=done, foreign=foreign, stuck=stuck)
