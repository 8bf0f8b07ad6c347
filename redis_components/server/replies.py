"""What Redis is asked and answers, in Python's terms."""

from __future__ import annotations

import redis


def as_text(raw: bytes | str) -> str:
    """An answer as text, also from a client with `decode_responses=True`; bytes that are not UTF-8 do not make it fail."""
    return raw.decode(errors="replace") if isinstance(raw, bytes) else raw


def as_bytes(raw: bytes | str) -> bytes:
    """An answer as it stands in Redis, also from a client with `decode_responses=True`."""
    return raw.encode() if isinstance(raw, str) else raw


def beginning_with(prefix: str) -> str:
    """The pattern (`MATCH` of the scans) of names that begin so; `prefix` may hold any signs."""
    return "".join(f"\\{sign}" if sign in "*?[]\\" else sign for sign in prefix) + "*"


def server_time(client: redis.Redis) -> float:
    """The one clock: Redis's time as epoch seconds. Raises `redis.RedisError`."""
    seconds, micros = client.time()
    return float(seconds + micros / 1e6)
