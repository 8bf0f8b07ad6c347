"""Hash of the text of a post or comment: a change of the hash is an edit.

It covers the title and the plain text. The author's name is excluded, because it changes on all comments of an author at once,
and so is the HTML, in which boards write new ids, signatures of links and "2 hours ago" each time.
"""

from __future__ import annotations

from enum import StrEnum
from hashlib import sha256
from typing import NamedTuple

import msgspec

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
    CORRECTED = "corrected"  # another text of the same moment: a better reading of the page (`trawl reparse`), not an edit
    DELETED = "deleted"  # its site shows it as removed, or a complete reading of the thread did not show it


class Change(msgspec.Struct, array_like=True, frozen=True, gc=False):  # gc: a thousand in each batch set off the collector
    """One version of one row. Stored as a JSON array in this order, so new fields go to the end."""

    row: str  # post or comment, or the subject of a fleet event (`fleet_events.py`)
    site: str
    id: str
    thread: str  # id of the post
    version: int
    kind: str  # a ChangeKind
    hash: str  # of its text at that version; empty: no text was ever seen
    forum: str = ""  # of a post at that version; empty: not known
    sentence: str = ""  # of a fleet event
    at: float = 0  # of a fleet event: when it happened, epoch s


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
