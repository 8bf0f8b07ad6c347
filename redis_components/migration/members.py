"""Reading the keys in which scrapy-redis keeps requests, in bounded steps; and telling its members from ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import redis

from redis_components.utils import bytes_to_str

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
