"""Items that are larger than what MySQL takes in one statement (`max_allowed_packet`).

The server ends the connection of whoever sends one, which looks as if the database had failed: the writer would wait for it, and
every other item with it. So they are found before they are sent.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, text

from forums.records.stored import Stored

_OTHERS = 65_536
"""Bytes of a statement that are not the item's texts."""
_LONGEST = 4  # bytes of a character
_ESCAPED = (b"\0", b"\n", b"\r", b"\x1a", b'"', b"'", b"\\")  # one byte more each


def too_large(connection: Connection, items: Sequence[Stored]) -> dict[int, str]:
    """Why items cannot be sent, by their places; nothing for other databases than MySQL and MariaDB."""
    if connection.dialect.name != "mysql":
        return {}
    known = connection.info  # of the driver's connection, for as long as it is open
    if "max_allowed_packet" not in known:
        known["max_allowed_packet"] = connection.execute(text("SELECT @@max_allowed_packet")).scalar_one()
    most = known["max_allowed_packet"]
    found = {}
    for place, item in enumerate(items):
        texts = [value for name in item.__struct_fields__ if isinstance(value := getattr(item, name), str)]
        if sum(map(len, texts)) * _LONGEST + _OTHERS > most and (size := sum(map(_sent, texts))) + _OTHERS > most:
            found[place] = f"its texts have {size:,} bytes, and the server takes {most:,} in one statement (max_allowed_packet)"
    return found


def _sent(value: str) -> int:
    raw = value.encode("utf-8", "replace")
    return len(raw) + sum(map(raw.count, _ESCAPED))
