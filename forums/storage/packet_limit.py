"""Refusal of items above MySQL's limit for one statement (`workers.consumers.packet_limit`)."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection

from forums.records.stored import Stored
from workers.consumers.packet_limit import most_bytes, sent_bytes, why_too_large


def too_large(connection: Connection, items: Sequence[Stored]) -> dict[int, str]:
    """Return the reasons of items that are too large to send, by index; empty for databases without a limit."""
    if (most := most_bytes(connection)) is None:
        return {}
    sizes = (sent_bytes((getattr(item, name) for name in item.__struct_fields__), most) for item in items)
    return {place: why_too_large(size, most) for place, size in enumerate(sizes) if size > most}
