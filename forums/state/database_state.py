"""State of the database in Redis: the records of its threads, its claim by the fleet, and the delays of what its writer stores.

By the records of stored threads a scan recognises new, changed and unchanged threads. A record is written when the report of the
thread is stored, so it never claims more than the database holds. A missing record costs requests and loses nothing: its thread
counts as new. The claim is the database that a fleet stores into, by the random id in its tables, and the one whose threads Redis
remembers. Of sites whose rows were removed nothing is stored any more. The delays are from publication to
storage, for Prometheus.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate
from typing import Annotated, Any

import msgspec
import redis

from forums.environment import Records
from redis_components.frontier import holds
from redis_components.keys import CrawlKeys
from redis_components.server.names import literal
from redis_components.server.untrusted_values import (
    MOST_BYTES,
    Count,
    as_text,
    hash_at,
    number,
    readable,
    server_time,
)

from .keys import ForumFleetKeys, script

LONGEST_TOKEN = 40
CHUNK = 500
"""Records written by one call of the script."""


_Page = Annotated[int, msgspec.Meta(ge=0, le=10_000_000)]


class ThreadRecord(msgspec.Struct, frozen=True, array_like=True):
    """One thread. `comments` is the site's count at the reading, else the number of comments seen."""

    token: str
    comments: Count = 0
    last_page: _Page = 1  # 0: the thread was gone
    last_comment: str | None = None
    cursor: str | None = None  # URL of the last page, on sites without numbered page URLs
    hour: Count = 0  # of the reading, in hours since 1970
    listed: Count | None = None  # comments that were seen, in the list's way of counting
    short: Count = 0  # consecutive readings that saw fewer than the list claimed
    own: str | None = None  # the thread's id on its page, if it differs from the list's
    asked: str | None = None  # of a gone thread: digest of the site file that made the request
    told_at: Count | None = None  # if more was read than the list showed: time of that reading (epoch s)

    @property
    def is_gone(self) -> bool:
        """True if the site did not have the thread any more."""
        return self.last_page == 0

    def has_token(self, token: str) -> bool:
        """Return True if this is the change token of the stored state."""
        return self.token == short_token(token)

    def counts(self, replies: int | None) -> bool:
        """Return True if a list with this count of replies counts exactly the stored ones."""
        return replies is not None and replies == (self.comments if self.listed is None else self.listed)

    def covers(self, replies: int | None, active: datetime | None) -> bool:
        """Return True if a list row shows nothing new: an earlier reading saw more than the row before had shown, so only the
        row's change token is new. `active`: time of the last post, from the row.
        """
        if self.told_at is None or self.short or active is None:
            return False
        return active.timestamp() <= self.told_at and self.counts(replies)


def short_token(token: str) -> str:
    """Return the stored form of a change token: long ones as a digest."""
    if len(token) <= LONGEST_TOKEN:
        return token
    return hashlib.blake2b(token.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


_decode = msgspec.msgpack.Decoder(ThreadRecord).decode
_encode = msgspec.msgpack.Encoder().encode


def most_records() -> int:
    """Return the maximum number of thread records (TRAWL_THREAD_RECORDS, about 100 bytes each).

    Raises ConfigError.
    """
    return Records.read().thread_records


def look_up(client: redis.Redis, keys: CrawlKeys, ids: Sequence[str]) -> dict[str, ThreadRecord | None]:
    """Return the records of these threads (`<site>/<thread>`), in one round trip for each `CHUNK`; None for a missing or
    unreadable one.
    """
    found: dict[str, ThreadRecord | None] = {}
    for start in range(0, len(ids), CHUNK):
        some = list(ids[start : start + CHUNK])
        values: Any = client.hmget(keys.threads(), some)
        found.update((one, _read(value)) for one, value in zip(some, values, strict=True))
    return found


def _read(value: bytes | None) -> ThreadRecord | None:
    try:
        return record_of("", value) if value is not None else None
    except ValueError:  # written by a newer version, or foreign: the thread is read again
        return None


def record_of(name: str, value: bytes) -> ThreadRecord:  # noqa: ARG001 - the form of what reads a field
    """Parse a thread's record. Raises ValueError."""
    if len(value) > MOST_BYTES:
        raise ValueError(f"{len(value):,} bytes are more than a record has")
    try:
        return _decode(value)
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def keep(client: redis.Redis, keys: CrawlKeys, records: Mapping[str, ThreadRecord]) -> None:
    """Store these records, and delete the change tokens of their start tasks, which the records replace.

    A reading without a list row has neither the token nor the list's count: both are taken from the former record.
    Above `most_records`, for each new record the oldest of a few random ones is evicted.
    """
    partial = [one for one, record in records.items() if not record.token or record.listed is None]
    before = look_up(client, keys, partial)
    entries: list[Any] = []
    for one, record in records.items():
        whole = _completed(record, before.get(one))
        entries += (one, record.token or whole.token, _encode(whole))
    for begin in range(0, len(entries), 3 * CHUNK):
        script("remember")(client, keys, {"most": most_records(), "entries": entries[begin : begin + 3 * CHUNK]})


def put_back(client: redis.Redis, keys: CrawlKeys, records: Mapping[str, ThreadRecord]) -> None:
    """Store these records where there are none."""
    with client.pipeline(transaction=False) as pipe:
        for one, record in records.items():
            pipe.hsetnx(keys.threads(), one, _encode(_completed(record, None)))
        pipe.execute()


def adopt(client: redis.Redis, keys: CrawlKeys, seen: Mapping[str, tuple[ThreadRecord, str, int | None]]) -> None:
    """Give records the change token and count of a list row that they cover, if they have not changed since they were read: from
    then on another token is a change. `seen`: by id the record as read, the row's token and its count.
    """
    entries: list[Any] = []
    for one, (record, token, replies) in seen.items():
        whole = msgspec.structs.replace(record, token=short_token(token), listed=replies, told_at=None)
        entries += (one, _encode(record), _encode(whole))
    for start in range(0, len(entries), 3 * CHUNK):
        script("adopt")(client, keys, {"entries": entries[start : start + 3 * CHUNK]})


def _completed(record: ThreadRecord, before: ThreadRecord | None) -> ThreadRecord:
    token = short_token(record.token) or (before.token if before else "")
    listed = record.listed
    if listed is None and before is not None and before.listed is not None:
        listed = max(0, before.listed + record.comments - before.comments)
    told_at = record.told_at
    if not record.token and before is not None and listed == before.listed:
        told_at = before.told_at  # nothing new was read: another token is a change, such as a new title
    return msgspec.structs.replace(record, token=token, listed=listed, told_at=told_at)


def forget(client: redis.Redis, keys: CrawlKeys, site: str | None = None, threads: Sequence[str] | None = None) -> int:
    """Delete the records of these threads of a site, without `threads` of all of them, without `site` of all sites, and their
    change tokens, so that each counts as new when a list shows it. Returns the number of deleted records.
    """
    if site is None:
        count: Any = client.hlen(keys.threads())
        client.unlink(keys.threads(), keys.start_tokens())
        return int(count)
    if threads:
        names = [f"{site}/{one}" for one in threads]
        client.hdel(keys.start_tokens(), *names)
        return int(client.hdel(keys.threads(), *names))
    forget_fields(client, keys.start_tokens(), f"{site}/")
    return forget_fields(client, keys.threads(), f"{site}/")


def forget_fields(client: redis.Redis, key: str, prefix: str) -> int:
    """Delete the fields of a hash with this prefix, in steps; return their number."""
    gone, cursor = 0, 0
    while True:
        found: Any = client.hscan(key, cursor, match=f"{literal(prefix)}*", count=1000)
        cursor, fields = found
        if fields:
            gone += int(client.hdel(key, *fields))
        if not cursor:
            return gone


ANOTHER_DATABASE = (
    "The database is another one than the one whose threads Redis remembers: what only that one held is not read again."
    " Run `trawl forums forget --all`, or `trawl db move` back to the former database."
)
LATELY_S = 60.0  # a claim is renewed each time that items are stored, usually each second


class DatabaseClaim:
    """The claim of one database for the fleet. Methods raise `redis.RedisError` when Redis does not answer."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        self._key = ForumFleetKeys().database()

    def take(self, identity: str, place: str) -> str | None:
        """Claim the database with this id, for good; return the place of the fleet's where that is another one.

        Safe to repeat. The first database that is written is the fleet's, until `move`.
        """
        ours, theirs = script("claim_database")(self._client, {"database": self._key}, {"identity": identity, "place": place})
        return None if ours else as_text(theirs)

    def holder(self) -> tuple[str, str] | None:
        """Return id and place of the fleet's database; None where none is claimed yet."""
        identity, place = self._fields("written", "place")
        return None if identity is None else (identity, place or "")

    def idle_s(self) -> float:
        """Return for how many seconds nothing was stored in the fleet's database."""
        (at,) = self._fields("at")
        return server_time(self._client) - float(at or 0)

    def move(self, identity: str, place: str) -> None:
        """Make this database the fleet's."""
        self._client.hset(self._key, mapping={"written": identity, "place": place})
        self._client.hdel(self._key, "refused", "refused_at")

    def refused(self) -> str | None:
        """Return the place of another database that a writer had within the last minute."""
        place, at = self._fields("refused", "refused_at")
        return place if at and server_time(self._client) - float(at) < LATELY_S else None

    def is_another(self) -> bool:
        """Return True if the records of threads speak of another database than the fleet's."""
        known, written = self._fields("known", "written")
        return known is not None and written is not None and known != written

    def forget(self) -> None:
        """Note that there are no records any more: the next database that is written is the one that they speak of."""
        self._client.hdel(self._key, "known")

    def _fields(self, *names: str) -> list[str | None]:
        values: Any = self._client.hmget(self._key, [*names])
        return [None if value is None else as_text(value) for value in values]


def removed_sites(client: redis.Redis) -> dict[str, float]:
    """Return the sites whose rows were removed, with the time of the removal (epoch s of Redis)."""
    held = holds.read(client, ForumFleetKeys())
    return {name.removeprefix(holds.SITE): one.at for name, one in held.items() if name.startswith(holds.SITE) and one.removed}


BOUNDS_S = (5, 15, 60, 300, 900, 3600, 21_600, 86_400)
MOST_SITES = 500  # in the exporter: a label for each
_PLACES = (*(str(bound) for bound in BOUNDS_S), "inf")


@dataclass(frozen=True, kw_only=True)
class DelayHistogram:
    """Histogram of one site, since its counts began."""

    counts: tuple[int, ...]  # by BOUNDS_S and above, not cumulative
    sum_s: float

    @property
    def buckets(self) -> list[tuple[str, float]]:
        """Return the buckets of Prometheus: upper bound and cumulative count."""
        bounds = (*(f"{bound:.1f}" for bound in BOUNDS_S), "+Inf")
        return list(zip(bounds, map(float, accumulate(self.counts)), strict=True))


class PublicationDelays:
    """The histograms of all sites. Methods raise `redis.RedisError` when Redis does not answer."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        self._key = ForumFleetKeys().delays()

    def add(self, delays: Mapping[str, Iterable[float]]) -> None:
        """Count these seconds, by site. Not idempotent: a writer that dies between its commit and this call loses a batch of
        them.
        """
        with self._client.pipeline() as pipe:
            for site, found in delays.items():
                seconds = list(found)
                for place, times in Counter(_PLACES[bisect_left(BOUNDS_S, one)] for one in seconds).items():
                    pipe.hincrby(self._key, f"{site}|{place}", times)
                pipe.hincrbyfloat(self._key, f"{site}|sum", sum(seconds))
            pipe.execute()

    def read(self) -> dict[str, DelayHistogram]:
        """Return the histograms by site, without unreadable values."""
        fields = readable(hash_at(self._client, self._key), delay_of)
        sites = sorted({name.rpartition("|")[0] for name in fields})[:MOST_SITES]
        return {
            site: DelayHistogram(
                counts=tuple(int(fields.get(f"{site}|{place}", 0)) for place in _PLACES), sum_s=fields.get(f"{site}|sum", 0.0)
            )
            for site in sites
        }


def delay_of(name: str, raw: bytes) -> float:
    """Parse a count, or a sum of seconds. Raises ValueError."""
    site, _, place = name.rpartition("|")
    if not site or place not in (*_PLACES, "sum"):
        raise ValueError("is not a count of delays")
    return number(raw, 0.0, 1e18)
