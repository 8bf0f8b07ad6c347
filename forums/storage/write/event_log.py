"""Log of changes of posts and comments, written in the transaction that makes them.

One row for each transaction: 1,000 new comments are one insert. An event's position is `<seq>-<place>`: the number of its
transaction and its index in it. Positions grow in the order of commits, because one writer at a time holds the writers' lock, so
a reader that stores the position of its last event misses none. Texts are not repeated here: `event_reader.py` finds them by
hash.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple, Self

import msgspec
from sqlalchemy import Connection, insert, select, text

from forums.storage.schema.tables import events, trawl_schema
from redis_components.errors import ConfigError

from .row_changes import Change, is_of_fleet

_CHANGES = msgspec.json.Decoder(list[Change])


class Position(NamedTuple):
    """Position of an event in the log. `Position(7, -1)` is before the first event of transaction 7."""

    seq: int
    place: int

    def __str__(self) -> str:
        return f"{self.seq}-{self.place}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse `7-0`, or `7`: before everything in transaction 7. Raises ConfigError."""
        seq, dash, place = text.partition("-")
        if not (_is_number(seq, 18) and (not dash or _is_number(place, 9))):
            raise ConfigError(f"{text!r:.50} is not a position in the event log: write it as 4711 or 4711-3")
        return cls(int(seq), int(place) if dash else -1)


def _is_number(text: str, most_digits: int) -> bool:
    """Return True if `text` is a number that fits into the database's columns."""
    return text.isascii() and text.isdigit() and len(text) <= most_digits


BEGINNING = Position(0, -1)
_WRITERS_LOCK = 0x7472_6178  # PostgreSQL's number of the writers' lock


def lock_writers(connection: Connection) -> None:
    """Exclude other writers until the transaction ends. Call it before the transaction reads anything, and before `append`.

    In SQLite a write transaction is exclusive anyway. MySQL's `GET_LOCK` belongs to the connection, and could be released only
    before the commit or never; there the one row of `trawl_schema` is locked.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _WRITERS_LOCK})
    elif connection.dialect.name == "mysql":
        connection.execute(select(trawl_schema.c.id).with_for_update())


def append(connection: Connection, changes: Sequence[Change]) -> None:
    """Store the changes of the connection's transaction, if there are any."""
    if changes:
        written = msgspec.json.encode(changes).decode()
        number = sum(not is_of_fleet(one) for one in changes)
        connection.execute(insert(events), {"stored_at": datetime.now(UTC), "number": number, "changes": written})


def changes_of(text: str) -> list[Change]:
    """Decode changes that `append` stored."""
    return _CHANGES.decode(text)
