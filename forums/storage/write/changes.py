"""Changes of posts and comments: the merging of their states, and the log of changes, with events of the fleet.

Merging is a pure function of the states, in any order. The present text is the text of the newest state. Each other text is one
revision, with the times of its first and last sight. A row is removed if a removal was found after the newest state that showed
it; its stored data stays. A state with the same time as the present one is a better reading of the page, not an edit: it
overwrites, without a revision. One value depends on the order: `deleted_at`, if an item was removed, came back and was removed
again, and the state of the time between arrives last.

The log is written in the transaction that makes the changes, one row for each transaction: 1,000 new comments are one insert. An
event's position is `<seq>-<place>`: the number of its transaction and its index in it. Positions grow in the order of commits,
because one writer at a time holds the writers' lock, so a reader that stores the position of its last event misses none. Texts
are not repeated here: `event_reader.py` finds them by hash. A change of the hash is an edit. The hash covers the title and the
plain text: the author's name changes on all comments of an author at once, and in the HTML boards write new ids, signatures of
links and "2 hours ago" each time.

Events of crawlers, operators, breakers, runs, rolls and the autoscaler are added by `forums/storage/history.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, NamedTuple, Self

import msgspec
from sqlalchemy import Connection, insert, select, text, update

from forums.records.stored import Comment, Item, Post
from forums.storage.schema.tables import event_outputs, trawl_schema
from redis_components.errors import ConfigError

NO_TEXT = ""
"""Stands for the hash of a row of which only a removed state was seen."""


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


ROWS = ("post", "comment")


def is_of_fleet(change: Change) -> bool:
    """Return True for a change of the fleet, not of a post or comment."""
    return change.row not in ROWS


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
    """Exclude other writers until the transaction ends. Call it before the transaction reads anything.

    In SQLite a write transaction is exclusive anyway. MySQL's `GET_LOCK` belongs to the connection, and could be released only
    before the commit or never; there the one row of `trawl_schema` is locked.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _WRITERS_LOCK})
    elif connection.dialect.name == "mysql":
        connection.execute(select(trawl_schema.c.id).with_for_update())


def reserved(key: str) -> str:
    """Return a name in `event_outputs` that no output can have."""
    return f"<{key}>"


def note_position(connection: Connection, key: str, seq: Any, place: int = 0) -> None:
    """Store a position of Trawl's own in `event_outputs`."""
    values = {"seq": seq, "place": place, "told_at": datetime.now(UTC)}
    if not connection.execute(update(event_outputs).where(event_outputs.c.name == reserved(key)).values(values)).rowcount:
        connection.execute(insert(event_outputs).values(name=reserved(key), failures=0, lost=0, **values))


def changes_of(text: str) -> list[Change]:
    """Decode changes that `upsert.append` stored."""
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


class Revision(msgspec.Struct, kw_only=True):
    """An earlier or later text that is not the present one."""

    first: datetime
    last: datetime
    text: Text | None  # None: keep the stored text


class Text(msgspec.Struct, frozen=True, kw_only=True):
    """Fields that a revision keeps."""

    title: str | None
    body: str
    body_html: str | None
    author: str | None
    edited_at: datetime | None


class MergedEntry(msgspec.Struct, kw_only=True):
    """A post or comment: as stored, and then, after `add`, as it has to be stored."""

    hash: str
    fetched_at: datetime
    first_seen_at: datetime
    changed_at: datetime | None
    deleted_at: datetime | None
    tombstone_at: datetime | None
    forum_id: str = ""  # of a post: from the newest state that has it
    text: Text | None = None  # the stored text, if it may become a revision
    revisions: dict[str, Revision] = {}
    item: Post | Comment | None = None  # source of the row's fields; None: the stored fields stay
    version: int = 0  # number of its events
    touched: set[str] = set()  # hashes of revisions to write or remove


def text_of(item: Post | Comment) -> Text:
    title = item.title if isinstance(item, Post) else None
    return Text(title=title, body=item.body, body_html=item.body_html, author=item.author, edited_at=item.edited_at)


def add(entry: MergedEntry, item: Post | Comment, digest: str) -> None:
    """Merge one more state. `digest` is the hash of its text."""
    at = item.fetched_at
    if isinstance(item, Post) and item.forum_id and at >= entry.fetched_at:
        entry.forum_id = item.forum_id
    entry.first_seen_at = min(entry.first_seen_at, at)
    if item.deleted:
        _removed_state(entry, item)
    elif entry.hash == NO_TEXT:
        entry.hash, entry.item, entry.fetched_at, entry.changed_at = digest, item, at, at
    elif at < entry.fetched_at:
        _older(entry, item, digest)
    else:
        _newer(entry, item, digest)
    if not item.deleted and entry.deleted_at is not None and at >= entry.deleted_at:
        shown = entry.tombstone_at
        entry.deleted_at = shown if shown is not None and shown > at else None


def missed(entry: MergedEntry, at: datetime | None) -> None:
    """Mark a row as removed that a reading of the whole thread, begun at `at`, did not show, unless a newer state shows it."""
    if at is not None and at > entry.fetched_at and (entry.deleted_at is None or at < entry.deleted_at):
        entry.deleted_at = at


def _removed_state(entry: MergedEntry, item: Post | Comment) -> None:
    at = item.fetched_at
    entry.tombstone_at = at if entry.tombstone_at is None else max(entry.tombstone_at, at)
    if entry.hash == NO_TEXT and at >= entry.fetched_at:  # the newest placeholder that the site shows
        entry.item, entry.fetched_at = item, at
    if entry.hash == NO_TEXT or at > entry.fetched_at:
        entry.deleted_at = at if entry.deleted_at is None else min(entry.deleted_at, at)


def _older(entry: MergedEntry, item: Post | Comment, digest: str) -> None:
    at = item.fetched_at
    if digest == entry.hash:
        entry.changed_at = min(entry.changed_at or entry.fetched_at, at)
        return
    for other, revision in list(entry.revisions.items()):
        if other != digest and revision.last == at:  # a better reading of that page
            del entry.revisions[other]
            entry.touched.add(other)
    known = entry.revisions.get(digest)
    entry.touched.add(digest)
    if known is None:
        entry.revisions[digest] = Revision(first=at, last=at, text=text_of(item))
        return
    known.first = min(known.first, at)
    if at >= known.last:
        known.last, known.text = at, text_of(item)


def _newer(entry: MergedEntry, item: Post | Comment, digest: str) -> None:
    at = item.fetched_at
    if digest != entry.hash:
        since = entry.changed_at or entry.fetched_at
        if at > entry.fetched_at:
            text = text_of(entry.item) if entry.item else entry.text
            entry.revisions[entry.hash] = Revision(first=since, last=entry.fetched_at, text=text)
            entry.touched.add(entry.hash)
            since = at
        entry.changed_at, entry.hash = since, digest
        if earlier := entry.revisions.pop(digest, None):  # an earlier text is back
            entry.touched.add(digest)
            entry.changed_at = min(since, earlier.first)
    elif entry.changed_at is None:
        entry.changed_at = entry.fetched_at
    entry.item, entry.fetched_at = item, at


@dataclass(frozen=True, kw_only=True)
class Refused:
    """An item that the database refused."""

    place: int  # index in the batch
    reason: str


@dataclass(frozen=True, kw_only=True)
class Written:
    """Result of a transaction, filled while it runs."""

    new: set[tuple[type[Item], str, str]] = field(default_factory=set)
    """New posts and comments: (`Post` or `Comment`, site, id)."""
    changes: list[Change] = field(default_factory=list)
    dropped: set[int] = field(default_factory=set)
    """Places in the batch of items of removed sites."""
