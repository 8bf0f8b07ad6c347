"""The values of one key in portions, and the commands that write a portion again.

Not DUMP and RESTORE, but for types of modules: their payload is one piece, so that a dupefilter of gigabytes would have to fit
into memory three times, and an older server refuses it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, TypeVar

import redis

from redis_components.server.untrusted_values import as_bytes

PORTION = 500  # elements
LIST_PORTION = 100  # items may be large
DUMPED = "dump"
"""The kind of a value that only its own module understands."""
KINDS = ("hash", "list", "set", "string", "zset", DUMPED)

Values = list[Any]
T = TypeVar("T")


def in_lots(things: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield the things in lists of `size`, the last one shorter."""
    rest = iter(things)
    while lot := list(islice(rest, size)):
        yield lot


def portions(client: redis.Redis, key: str | bytes, kind: str) -> Iterator[Values]:
    """Yield the values of a key that does not change, flat: fields and values of a hash, members and scores of a sorted set.

    An element may come twice, in no more than two portions. Raises `redis.RedisError`.
    """
    if kind == "hash":
        yield from _flat(client.hscan_iter(key, count=PORTION))
    elif kind == "zset":
        yield from _flat(client.zscan_iter(key, count=PORTION))
    elif kind == "set":
        yield from in_lots(client.sscan_iter(key, count=PORTION), PORTION)
    elif kind == "list":
        start = 0
        while part := client.lrange(key, start, start + LIST_PORTION - 1):
            yield list(part)
            start += len(part)
    elif kind == "string":
        yield [as_bytes(client.get(key) or b"")]
    else:
        yield [client.dump(key)]


def write(client: Any, key: str | bytes, kind: str, values: Values) -> None:
    """Add a portion to a key. Raises ValueError for a kind or a form that no backup has."""
    if kind not in KINDS or not values:
        raise ValueError(f"a value of kind {kind!r:.40}")
    if kind == "hash":
        client.hset(key, items=values)
    elif kind == "zset":
        client.zadd(key, dict(zip(values[::2], values[1::2], strict=True)))
    elif kind == "set":
        client.sadd(key, *values)
    elif kind == "list":
        client.rpush(key, *values)
    elif kind == "string":
        client.set(key, values[0])
    else:
        client.restore(key, 0, values[0], replace=True)


def _flat(pairs: Iterable[tuple[Any, Any]]) -> Iterator[Values]:
    for part in in_lots(pairs, PORTION):
        yield [value for pair in part for value in pair]
