"""Looks for single requests and start tasks in all places of a crawl, and takes them out.

Queues have no index by URL, so this reads them, in steps and `MOST` entries of each key at most: for a person who asks, not for a
loop.
"""

from __future__ import annotations

import json
import struct
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import count
from typing import Any, cast

import msgspec
import redis

from redis_components.codec import values
from redis_components.errors import CodecError
from redis_components.keys import CrawlKeys

from .dead_letters import parse

MOST = 200_000
"""Entries of one key that are looked at."""
_STEP = 1000
_MOST_KEYS = 5000  # lanes, owners and lots


class EntryLocation(StrEnum):
    """The place of an entry."""

    READY = "ready"
    LATER = "later"  # a request that carries a time
    LEASED = "leased"
    PARKED = "parked"  # its site is held
    WAITING = "waiting"  # a start task that no crawler has taken
    DEAD = "dead"


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One request or start task that was looked for."""

    place: EntryLocation
    fields: dict[str, Any]  # of a request as the codec stores them, of a start task its JSON; {"url": …} for a plain URL
    is_task: bool
    key: str
    attempts: int = 0  # of a request: how often a crawler died with it
    stored_at: float | None = None  # of a request: when it was stored first (epoch s), where its order has the time
    owner: str = ""  # its crawler process
    at_s: float | None = None  # LATER: not before; LEASED, DEAD: since; epoch s of Redis
    reason: str = ""  # why it is dead
    raw: bytes = b""  # the member, value or field of `key` that holds it

    @property
    def url(self) -> str:
        """Its URL; "" for a start task without one."""
        return str(self.fields.get("u") or self.fields.get("url") or "")


Fits = Callable[[dict[str, Any]], bool]
"""True if the fields of an entry match the search."""


@dataclass(frozen=True, kw_only=True)
class Search:
    """The entries that were found, and the keys that have more than were looked at."""

    entries: tuple[Entry, ...]
    cut: tuple[str, ...] = ()


def find(client: redis.Redis, keys: CrawlKeys, needles: Sequence[bytes], fits: Fits) -> Search:
    """Return the entries that hold one of `needles` in their bytes and whose fields fit. Keys of another type count as empty.

    Raises `redis.RedisError` when Redis does not answer.
    """
    looker = _Looker(client, keys, needles, fits)
    found = [
        entry
        for part in (looker.ready, looker.later, looker.leased, looker.parked, looker.waiting, looker.dead)
        for entry in part()
    ]
    return Search(entries=tuple(found), cut=tuple(looker.cut))


def take_out(client: redis.Redis, keys: CrawlKeys, needles: Sequence[bytes], fits: Fits) -> int:
    """Remove these entries; return their number. Leased and parked ones stay with their owners and lots. Repeatable.

    An entry that a crawler leases meanwhile stays, too. Raises `redis.RedisError`.
    """
    gone, is_cut = 0, True
    while is_cut:
        looker, before = _Looker(client, keys, needles, fits), gone
        for part in (looker.ready, looker.later, looker.waiting, looker.dead):
            found = [(entry.key, entry.raw) for entry in part()]
            kinds = {key: cast("bytes", client.type(key)) for key in {key for key, _ in found}}
            for start in range(0, len(found), _STEP):
                with client.pipeline(transaction=False) as pipe:
                    for key, raw in found[start : start + _STEP]:
                        by = _REMOVE.get(kinds[key])
                        pipe.execute_command(*((by, key, raw) if by else ("LREM", key, 1, raw)))  # type: ignore[no-untyped-call]
                    gone += sum(map(int, pipe.execute()))
        is_cut = bool(looker.cut) and gone > before
    return gone


_REMOVE = {b"zset": "ZREM", b"set": "SREM", b"hash": "HDEL"}


class _Looker:
    def __init__(self, client: redis.Redis, keys: CrawlKeys, needles: Sequence[bytes], fits: Fits) -> None:
        self._client = client
        self._keys = keys
        self._needles = needles
        self._fits = fits
        self.cut: list[str] = []

    def ready(self) -> Iterator[Entry]:
        lanes = self._found(self._keys.lanes(), b"zset", most=_MOST_KEYS)
        names = [member.decode("utf-8", "replace") for _, member, _ in lanes if not member.startswith(b"\1")]
        for key in (self._keys.ready(), *map(self._keys.lane, names)):
            for _, member, _ in self._found(key, b"zset"):
                if entry := self._request(EntryLocation.READY, member, key):
                    yield replace(entry, raw=member)

    def later(self) -> Iterator[Entry]:
        key = self._keys.later_requests()
        for _, member, at_ms in self._found(key, b"zset"):
            if entry := self._request(EntryLocation.LATER, member.partition(b"|")[2], key):
                yield replace(entry, at_s=at_ms / 1000, raw=member)

    def leased(self) -> Iterator[Entry]:
        for _, owner, _ in self._found(self._keys.owners(), b"zset", most=_MOST_KEYS):
            name = owner.decode("utf-8", "replace")
            key = self._keys.leases(name)
            for _, lease, value in self._found(key, b"hash"):
                if entry := self._lease(EntryLocation.LEASED, value, key):
                    yield replace(entry, owner=name, at_s=_leased_at(lease))

    def parked(self) -> Iterator[Entry]:
        for _, lot, _ in self._found(self._keys.parked(), b"hash", most=_MOST_KEYS):
            key = self._keys.parked_lot(lot.decode("utf-8", "replace"))
            for _, value, _ in self._found(key, b"list"):
                if entry := self._lease(EntryLocation.PARKED, value, key):
                    yield entry

    def waiting(self) -> Iterator[Entry]:
        keys = self._keys
        for key in dict.fromkeys((keys.start_urls, *keys.more_start_urls, keys.fed_tasks, keys.later_tasks(), keys.backlog())):
            for _, data, _ in self._found(key, b"list", b"set", b"zset"):
                if entry := self._task(EntryLocation.WAITING, data, key):
                    yield replace(entry, raw=data)
        for key in dict.fromkeys((*keys.turn_keys, keys.fed_turns, keys.later_turns())):
            for _, member, _ in self._found(key, b"zset"):
                if entry := self._task(EntryLocation.WAITING, member.partition(b"\0")[2][8:], key):
                    yield replace(entry, raw=member)
        for _, id_, value in self._found(keys.overflow(), b"hash"):
            if self._may_fit(value) and (entry := self._task(EntryLocation.WAITING, _text_of(value), keys.overflow())):
                yield replace(entry, raw=id_)

    def dead(self) -> Iterator[Entry]:
        key = self._keys.dead()
        for number, raw, _ in self._found(key, b"list"):
            letter = parse(raw, number or 0) if self._may_fit(raw) else None
            if letter is None:
                continue
            make = self._request if values.is_ours(letter.payload) else self._task
            payload = b"\0" * 9 + letter.payload if values.is_ours(letter.payload) else letter.payload
            if entry := make(EntryLocation.DEAD, payload, key):
                yield replace(entry, at_s=letter.at_s, reason=letter.reason, attempts=0, raw=raw)

    # entries

    def _may_fit(self, raw: bytes) -> bool:
        return any(needle in raw for needle in self._needles)

    def _request(self, place: EntryLocation, member: bytes, key: str) -> Entry | None:
        """Return the entry of a member: 8 bytes of order, 1 of attempts, payload."""
        if len(member) < 10 or not self._may_fit(member):
            return None
        try:
            fields = values.loads(member[9:])
        except CodecError:
            return None
        if not self._fits(fields):
            return None
        number, attempts = struct.unpack_from(">QB", member)
        return Entry(place=place, fields=fields, is_task=False, key=key, attempts=attempts, stored_at=_stored_at(number))

    def _task(self, place: EntryLocation, data: bytes, key: str) -> Entry | None:
        if not self._may_fit(data):
            return None
        try:
            fields = json.loads(data)
        except (ValueError, RecursionError):
            fields = {"url": data.decode("utf-8", "replace").strip()}
        if not isinstance(fields, dict) or not self._fits(fields):
            return None
        return Entry(place=place, fields=fields, is_task=True, key=key)

    def _lease(self, place: EntryLocation, value: bytes, key: str) -> Entry | None:
        """Return the entry of `<kind><score>|<member>`, of a start task `<kind><score>|<bytes>|<key><data>`
        (`lua/lib/leases.lua`).
        """
        if not self._may_fit(value):
            return None
        rest = value.partition(b"|")[2]
        if value[:1] == b"r":
            return self._request(place, rest, key)
        size, _, named = rest.partition(b"|")
        data = named[int(size) :] if size.isdigit() else b""
        if named[: int(size) if size.isdigit() else 0].endswith(b":turns"):
            data = data.partition(b"\0")[2][8:]
        return self._task(place, data, key)

    def _found(self, key: str, *kinds: bytes, most: int = MOST) -> Iterator[tuple[int | None, Any, Any]]:
        """Yield place (None in a set), member and score, or field and value, of a key of one of these types; at most `most`."""
        kind = cast("bytes", self._client.type(key))
        for number, one in enumerate(_READ[kind](self._client, key) if kind in kinds else ()):
            if number >= most:
                self.cut.append(key)
                return
            yield None if kind == b"set" else number, *one


def _pages(read: Callable[[int, int], Any]) -> Iterator[Any]:
    for start in count(0, _STEP):
        found = read(start, start + _STEP - 1)
        yield from found
        if len(found) < _STEP:
            return


_READ: dict[bytes, Callable[[Any, str], Iterable[tuple[Any, Any]]]] = {
    b"list": lambda client, key: ((one, None) for one in _pages(lambda first, last: client.lrange(key, first, last))),
    b"zset": lambda client, key: _pages(lambda first, last: client.zrange(key, first, last, withscores=True)),
    b"set": lambda client, key: ((one, None) for one in client.sscan_iter(key, count=_STEP)),
    b"hash": lambda client, key: client.hscan_iter(key, count=_STEP),
}


def _stored_at(number: int) -> float | None:
    """Return the time of an order number, as in `lib/ages.lua`: microseconds, counted down where the last comes first; None for
    others.
    """
    now_us = time.time() * 1e6 + 60e6  # the clock of Redis may be ahead
    at_us = number if number <= now_us else 2**52 - number
    return at_us / 1e6 if 1e15 <= at_us <= now_us else None


def _leased_at(lease: bytes) -> float | None:
    """Return the time of a lease id, `<exchange>.<n>`: the number of an exchange is the time (ms) at which its owner asked."""
    exchange = lease.partition(b".")[0]
    return int(exchange) / 1000 if exchange.isdigit() and 12 < len(exchange) < 15 else None


def _text_of(value: bytes) -> bytes:
    """Return the text of a task in the overflow: the last element of a msgpack array."""
    try:
        found = msgspec.msgpack.decode(value)
        text = found[-1]
    except (msgspec.DecodeError, ValueError, LookupError, TypeError, RecursionError):
        return b""
    return text if isinstance(text, bytes) else str(text).encode("utf-8", "replace")
