"""Parses values written by other processes. Bad values are skipped; the rest is still read.

Each reader of the fleet's records uses these functions. Skipped values are found by `workers.state.quarantine`, which checks
by the same functions: `trawl status` shows them, `trawl doctor --repair` sets them aside.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, TypeVar

import msgspec
import redis
from redis.exceptions import NoPermissionError, OutOfMemoryError, ReadOnlyError

from redis_components.errors import ConfigError


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


MOST_BYTES = 65_536
"""Of one record: the largest that Trawl writes are a tenth of it."""
LATEST = 32_503_680_000.0
"""Epoch s, the year 3000: later times cannot be shown, and are not valid."""

Epoch = Annotated[float, msgspec.Meta(ge=0, le=LATEST)]
Count = Annotated[int, msgspec.Meta(ge=0, le=2**62)]
Size = Annotated[int, msgspec.Meta(ge=0, le=1000)]
"""Crawlers of one service: more is a typing error."""
Amount = Annotated[float, msgspec.Meta(ge=0, le=1e15)]

T = TypeVar("T")


class WrongValue(ValueError):
    """A value that Trawl does not write. The message is a predicate: `is not a number from 0 to 1`."""


def decoded(raw: bytes | str, kind: type[T], *, most: int = MOST_BYTES) -> T:
    """Return the record of that kind in a line of JSON. Raises ValueError for everything else, however large or deep it is."""
    if len(raw) > most:
        raise ValueError(f"{len(raw):,} bytes are more than a record has ({most:,})")
    try:
        return msgspec.json.decode(raw, type=kind)
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def encoded(record: Any, what: str, *, most: int = MOST_BYTES, cut: bool = False) -> bytes:
    """Return the line of JSON from which `decoded` reads the record. Where that would be refused: raise ConfigError that names
    `what` it is and its largest field, or with `cut` shorten its texts and lists, for what processes report of themselves.
    """
    line = msgspec.json.encode(record)
    for longest in (2_000, 300, 100) if cut and len(line) > most else ():
        line = msgspec.json.encode(_shortened(msgspec.to_builtins(record), longest))
        if len(line) <= most:
            return line
    if len(line) > most:
        field, size = _largest(msgspec.to_builtins(record))
        raise ConfigError(f"{what} is too large: {field} has {size:,} bytes, and all of it may have {most:,}: make it shorter")
    return line


def _shortened(value: Any, longest: int) -> Any:
    if isinstance(value, dict):
        return {name: _shortened(one, longest) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_shortened(one, longest) for one in value[:longest]]
    return value[:longest] if isinstance(value, str) else value


def _largest(fields: Any) -> tuple[str, int]:
    """Return the largest field of an object and its bytes, as `declaration.arguments`."""
    sizes = {name: len(msgspec.json.encode(value)) for name, value in fields.items()}
    name = max(sizes, key=lambda one: sizes[one])
    inner = fields[name]
    if isinstance(inner, dict) and inner:
        return f"{name}.{_largest(inner)[0]:.200}", sizes[name]
    return name, sizes[name]


def whole(raw: bytes | str, least: int = 0, most: int = 2**53) -> int:
    """Return a whole number in ASCII digits within these bounds. Raises WrongValue."""
    text = as_text(raw)
    if not re.fullmatch(r"\d{1,16}", text, re.ASCII) or not least <= int(text) <= most:
        raise WrongValue(f"is not a whole number from {least} to {most}")
    return int(text)


def number(raw: bytes | str, least: float = 0.0, most: float = LATEST) -> float:
    """Return a number within these bounds. Raises WrongValue."""
    text = as_text(raw)
    try:
        value = float(text) if len(text) < 64 else math.nan
    except ValueError:
        value = math.nan
    if not least <= value <= most:  # also of NaN
        raise WrongValue(f"is not a number from {least:g} to {most:g}")
    return value


def hash_at(client: redis.Redis, key: str) -> dict[bytes, bytes]:
    """Return all of a hash that is bounded by the fleet's size; empty where the key has another type."""
    try:
        found = client.hgetall(key)
    except redis.ResponseError as error:
        if is_foreign(error):
            return {}
        raise
    return {as_bytes(field): as_bytes(raw) for field, raw in found.items()}


def readable(fields: Mapping[bytes, bytes], read: Callable[[str, bytes], T]) -> dict[str, T]:
    """Return the results of `read` for each field and value, by field in their order; fields with a ValueError are left out."""
    found = {}
    for field, raw in sorted(fields.items()):
        try:
            name = field.decode()
            found[name] = read(name, raw)
        except ValueError:
            continue
    return found


def is_foreign(error: BaseException) -> bool:
    """Return True if Redis refuses because of a key's content: another type, or a value that a script cannot count with.

    False for out of memory, read-only, a full disk, a missing permission: these are states of Redis itself, and pass.
    """
    if not isinstance(error, redis.ResponseError) or isinstance(error, OutOfMemoryError | ReadOnlyError | NoPermissionError):
        return False
    text = str(error)
    return "WRONGTYPE" in text or "attempt to " in text or "not an integer" in text or "not a valid float" in text


def answers_of(pipe: Any) -> list[Any]:
    """Return the replies of a pipeline without a transaction; None for a command whose key has another type."""
    answers = pipe.execute(raise_on_error=False)
    for answer in answers:
        if isinstance(answer, Exception) and not is_foreign(answer):
            raise answer
    return [None if isinstance(answer, Exception) else answer for answer in answers]
