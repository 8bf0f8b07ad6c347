"""What is in a Redis, comparable: the same under every server that is supported."""

from __future__ import annotations

from collections.abc import Iterable

import redis

Contents = dict[bytes | str, object]


def contents(client: redis.Redis, keys: Iterable[bytes | str] | None = None) -> Contents:
    """Key -> its value, byte for byte, of these keys, or of all but the audit of commands; expiry times are left out.

    Not DUMP alone: Redis before 8 moves a large set or hash to a larger table bit by bit, whoever reads it, and DUMP shows the
    members in the table's order.
    """
    if keys is None:
        keys = (key for key in client.scan_iter("*") if not key.endswith(b":fleet:audit"))
    return {key: _value(client, key) for key in keys}


def _value(client: redis.Redis, key: bytes | str) -> object:
    kind = client.type(key)
    if kind == b"set":
        return client.smembers(key)
    if kind == b"hash":
        return client.hgetall(key)
    return client.dump(key)
