"""Merging of states of a post or comment into its stored row: a pure function of the states, in any order.

- The present text is the text of the newest state. Each other text is one revision, with the times of its first and last sight.
- A row is removed if a removal was found after the newest state that showed it. Its stored data stays.
- A state with the same time as the present one is a better reading of the page, not an edit: it overwrites, without a revision.

One value depends on the order: `deleted_at`, if an item was removed, came back and was removed again, and the state of the time
between arrives last.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from forums.records.stored import Comment, Post

from .event_log import NO_TEXT, content_hash


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


def hash_of(item: Post | Comment) -> str:
    return content_hash(item.title, item.body) if isinstance(item, Post) else content_hash(None, item.body)


def first_entry(item: Post | Comment, digest: str) -> MergedEntry:
    """Return the row of an item that is not stored yet."""
    at = item.fetched_at
    entry = MergedEntry(
        hash=digest, fetched_at=at, first_seen_at=at, changed_at=at, deleted_at=None, tombstone_at=None, item=item
    )
    if item.deleted:
        entry.hash, entry.changed_at, entry.deleted_at, entry.tombstone_at = NO_TEXT, None, at, at
    if isinstance(item, Post):
        entry.forum_id = item.forum_id or ""
    return entry


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
