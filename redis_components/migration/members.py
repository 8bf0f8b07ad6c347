"""Taking what scrapy-redis wrote out of the way of our own keys, before anything of it is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import redis

from redis_components.errors import TrawlError
from redis_components.keys import CrawlKeys
from redis_components.server.scripts import script
from redis_components.utils import bytes_to_str


def set_aside(client: redis.Redis, source: str, aside: str, *, owners: str, members: Sequence[bytes] | None = None) -> int:
    """Move `members` of the key `source`, or all of it where None are named, under the name `aside`; return their number.

    A list of which an earlier run has set something aside is moved in parts, the oldest first; repeat it until 0. Raises
    TrawlError while a Trawl crawler works there (`owners` is the key of its heartbeat), or where `aside` is of another type.
    """
    outcome, moved = script("set_aside")(
        client,
        {"source": source, "aside": aside, "owners": owners},
        {"whole": int(members is None), "members": members or []},
    )
    if outcome == b"crawling":
        raise TrawlError(f"a Trawl crawler works with {source}: stop it, import, and start it again")
    if outcome == b"kinds":
        raise TrawlError(f"{source} has become of another type than {aside}: look at it again")
    return int(moved)


@dataclass(frozen=True, kw_only=True)
class BothKeys:
    """The keys of a crawl in scrapy-redis and in Trawl."""

    theirs: CrawlKeys
    ours: CrawlKeys

    @property
    def shared_queue(self) -> bool:
        """Both packages use the same key for the queue."""
        return self.theirs.requests == self.ours.requests

    @property
    def shared_dupefilter(self) -> bool:
        """Both packages use the same key for fingerprints."""
        return self.theirs.dupefilter == self.ours.dupefilter


WINDOW = 200
SCAN = 1000

Progress = Callable[[int, int], None]
"""Called with the number of entries done, and of all."""


def is_foreign(member: bytes) -> bool:
    """Return True if Trawl did not write this member of the sorted set; its members begin with an order number below 2^53."""
    return len(member) < 9 or member[0] != 0


def is_pickle(member: bytes) -> bool:
    """Return True if it looks like a pickle: all of them end in a point, and since protocol 2 (2003) begin with one byte."""
    return member[:1] == b"\x80" and member[-1:] == b"."


def kind_of(client: redis.Redis, key: str) -> str:
    """Return the type of a key, or `none`."""
    kind: str = bytes_to_str(client.type(key))
    return kind


def size_of(client: redis.Redis, key: str, kind: str) -> int:
    """Return the number of members of a key of that type; 0 for a missing one."""
    sizes: Any = {"zset": client.zcard, "list": client.llen, "set": client.scard}
    return int(sizes[kind](key)) if kind in sizes else 0


def bytes_of(client: redis.Redis, *keys: str) -> int:
    """Return Redis's memory for these keys, estimated from its samples; 0 where it is not available."""
    try:
        return sum(client.memory_usage(key) or 0 for key in keys)
    except redis.ResponseError:  # a user without the right to ask
        return 0


def oldest(client: redis.Redis, key: str, kind: str, count: int) -> list[bytes]:
    """Return the first `count` members of a sorted set; of a list the oldest ones: scrapy-redis writes at its head."""
    found: Any = []
    if kind == "zset":
        found = client.zrange(key, 0, count - 1)
    elif kind == "list":
        written: Any = client.lrange(key, -count, -1)
        found = written[::-1]
    return list(found)


def windows(client: redis.Redis, key: str, kind: str) -> Iterator[list[bytes]]:
    """Yield all members of a key, in batches; while others write, some may be left out or come twice."""
    place = 0
    while True:
        found: Any = []
        if kind == "zset":
            found = client.zrange(key, place, place + WINDOW - 1)
        elif kind == "list":
            found = client.lrange(key, place, place + WINDOW - 1)
        if not found:
            return
        yield list(found)
        place += len(found)


def strangers(client: redis.Redis, key: str) -> Iterator[list[bytes]]:
    """Yield the members of a sorted set that are not ours, in batches that are not empty."""
    cursor: Any = None
    while cursor != 0:
        scanned: Any = client.zscan(key, cursor or 0, count=SCAN)
        cursor, found = scanned
        if foreign := [member for member, _ in found if is_foreign(member)]:
            yield foreign
