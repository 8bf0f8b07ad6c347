"""Rows that are larger than MySQL's limit for one statement (`max_allowed_packet`).

The server closes the connection of a client that sends one, which looks as if the database had failed: the writer would wait for
it, and everything else with it. So they are found before they are sent.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import Connection, text

OTHERS = 65_536
"""Bytes of a statement that are not values."""
_CELL = 32  # bytes of a number, and of the signs around a value
_LONGEST = 4  # bytes of a character
_ESCAPED = (b"\0", b"\n", b"\r", b"\x1a", b'"', b"'", b"\\")  # one byte more each


def most_bytes(connection: Connection) -> int | None:
    """Return the most bytes of the values in one statement; None for other databases than MySQL and MariaDB."""
    if connection.dialect.name != "mysql":
        return None
    known = connection.info  # of the driver's connection, for as long as it is open
    if "max_allowed_packet" not in known:
        known["max_allowed_packet"] = connection.execute(text("SELECT @@max_allowed_packet")).scalar_one()
    return int(known["max_allowed_packet"]) - OTHERS


def sent_bytes(values: Iterable[Any], most: int) -> int:
    """Return the bytes of values in a statement: exactly where that may be over `most`, else an upper bound."""
    values = list(values)
    texts = [value for value in values if isinstance(value, str)]
    others = _CELL * len(values)
    bound = others + _LONGEST * sum(map(len, texts))
    return bound if bound <= most else others + sum(map(_of_text, texts))


def why_too_large(size: int, most: int) -> str:
    """Return the reason for refusing a row of this size."""
    return f"it has {size:,} bytes, and the server takes {most:,} in one statement (max_allowed_packet)"


def _of_text(value: str) -> int:
    raw = value.encode("utf-8", "replace")
    return len(raw) + sum(map(raw.count, _ESCAPED))
