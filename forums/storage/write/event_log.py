"""Log of changes of posts and comments, and of events of the fleet, written in the transaction that makes them.

One row for each transaction: 1,000 new comments are one insert. An event's position is `<seq>-<place>`: the number of its
transaction and its index in it. Positions grow in the order of commits, because one writer at a time holds the writers' lock, so
a reader that stores the position of its last event misses none. Texts are not repeated here: `event_reader.py` finds them by
hash. A change of the hash is an edit. The hash covers the title and the plain text: the author's name changes on all comments of
an author at once, and in the HTML boards write new ids, signatures of links and "2 hours ago" each time.

Events of crawlers, operators, breakers, runs, rolls and the autoscaler are added by `forums/writer/run_history.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from enum import StrEnum
from hashlib import sha256
from typing import Any, NamedTuple, Self

import msgspec
from sqlalchemy import Connection, insert, select, text, update

from forums.storage.schema.tables import event_outputs, events, trawl_schema
from redis_components.errors import ConfigError

NO_TEXT = ""
"""Stands for the hash of a row of which only a removed state was seen."""


def content_hash(title: str | None, body: str) -> str:
    """Return the first 128 bits of SHA-256 over the title (if any), a separator and the text, as 32 hexadecimal digits."""
    return sha256(f"{title}\x1f{body}".encode() if title is not None else body.encode()).hexdigest()[:32]


class ChangeKind(StrEnum):
    """Kind of a change of a post or comment."""

    NEW = "new"  # it was not stored before
    RESTORED = "restored"  # it was removed and is back
    MOVED = "moved"  # a post is in another forum
    EDITED = "edited"  # another text, fetched later; the former one is a revision
    CORRECTED = "corrected"  # another text of the same moment: a better reading of the page (`trawl sites reparse`), not an edit
    DELETED = "deleted"  # its site shows it as removed, or a complete reading of the thread did not show it


class Change(msgspec.Struct, array_like=True, frozen=True, gc=False):  # gc: a thousand in each batch set off the collector
    """One version of one row. Stored as a JSON array in this order, so new fields go to the end."""

    row: str  # post or comment, or the subject of a fleet event, a `FleetRow`
    site: str
    id: str
    thread: str  # id of the post
    version: int
    kind: str  # a ChangeKind
    hash: str  # of its text at that version; empty: no text was ever seen
    forum: str = ""  # of a post at that version; empty: not known
    sentence: str = ""  # of a fleet event
    at: float = 0  # of a fleet event: when it happened, epoch s

    def blank(self) -> Change:
        """Return what stands in the place of a removed site's change: its kind is empty, and no reader shows it."""
        return Change(self.row, "", "", "", 0, "", NO_TEXT)


def is_of_fleet(change: Change) -> bool:
    """Return True for a change of the fleet, not of a post or comment."""
    return change.row not in ("post", "comment")


class State(NamedTuple):
    """The part of a row that decides on changes."""

    hash: str
    deleted: bool
    forum: str


def kinds_of(before: State | None, after: State, *, kept: bool) -> list[ChangeKind]:
    """Return the changes between two states of a row; `before` is None for a row that was not stored.

    `kept`: the former text is a revision now, so the new one is a later text and not a better reading of the same moment.
    """
    if before is None:
        first = [ChangeKind.NEW] if after.hash != NO_TEXT else []
        return [*first, ChangeKind.DELETED] if after.deleted else first
    found = []
    if before.deleted and not after.deleted:
        found.append(ChangeKind.RESTORED)
    if before.forum and after.forum and before.forum != after.forum:
        found.append(ChangeKind.MOVED)
    if before.hash != after.hash:
        found.append(ChangeKind.EDITED if kept or before.hash == NO_TEXT else ChangeKind.CORRECTED)
    if after.deleted and not before.deleted:
        found.append(ChangeKind.DELETED)
    return found


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


def reserved(key: str) -> str:
    """Return a name in `event_outputs` that no output can have."""
    return f"<{key}>"


def note_position(connection: Connection, key: str, seq: Any, place: int = 0) -> None:
    """Store a position of Trawl's own in `event_outputs`."""
    values = {"seq": seq, "place": place, "told_at": datetime.now(UTC)}
    if not connection.execute(update(event_outputs).where(event_outputs.c.name == reserved(key)).values(values)).rowcount:
        connection.execute(insert(event_outputs).values(name=reserved(key), failures=0, lost=0, **values))


def changes_of(text: str) -> list[Change]:
    """Decode changes that `append` stored."""
    return _CHANGES.decode(text)


class FleetRow(StrEnum):
    """Subject of a fleet event: the value of its `row`."""

    CRAWLER = "crawler"
    BREAKER = "breaker"
    FLEET = "fleet"


class FleetKind(StrEnum):
    """Type of a fleet event: the value of its `type`."""

    STARTED = "started"  # a crawler process
    ENDED = "ended"  # a crawler process, normally
    DIED = "died"  # a crawler process: killed, crashed, hung, out of memory
    LOST = "lost"  # a crawler process whose end was not reported: its node is gone
    OPENED = "opened"  # a breaker
    CLOSED = "closed"
    CHANGED = "changed"  # an action of an operator or of the fleet itself: scale, roll, deploy, limit, …


PAST_WORDS = ("gap", "forum")
"""Subjects that older Trawls wrote: rules may still name them."""
