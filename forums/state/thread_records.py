"""Records of stored threads, by which a scan recognises new, changed and unchanged threads.

A record is written when the thread's report is stored, so it never claims more than the database holds. A missing record costs
requests and loses nothing: its thread counts as new.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any

import msgspec
import redis

from forums.environment import Records
from redis_components.keys import CrawlKeys
from redis_components.server.names import literal
from redis_components.server.untrusted_values import MOST_BYTES, Count

from .keys import script

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
            pipe.hsetnx(keys.threads(), one, _encode(record))
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
