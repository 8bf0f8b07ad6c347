"""Conversion of Redis's requests and replies to Python's terms."""

from __future__ import annotations

import redis


def as_text(raw: bytes | str) -> str:
    """Return a reply as text, also from a client with `decode_responses=True`; bytes that are not UTF-8 do not make it fail."""
    return raw.decode(errors="replace") if isinstance(raw, bytes) else raw


def as_bytes(raw: bytes | str) -> bytes:
    """Return a reply as its bytes in Redis, also from a client with `decode_responses=True`."""
    return raw.encode() if isinstance(raw, str) else raw


def beginning_with(prefix: str) -> str:
    """Return the pattern (`MATCH` of the scans) of names with this prefix, which may hold any signs."""
    return "".join(f"\\{sign}" if sign in "*?[]\\" else sign for sign in prefix) + "*"


def server_time(client: redis.Redis) -> float:
    """Return Redis's time as epoch seconds, the one clock of the fleet. Raises `redis.RedisError`."""
    seconds, micros = client.time()
    return float(seconds + micros / 1e6)
