"""What a stored post or comment becomes when more states of it arrive: a pure function of the states, in any order.

- The present text is that of the newest state; each other text that was seen is one revision, from its first sight to its last.
- It is removed when it was found to be removed after the newest state that showed it. What is stored of it stays.
- A state of the same time as the present one is not an edit but a better reading of the page: it overwrites, without a revision.

One thing depends on the order: the time in `deleted_at`, where something was removed, came back and was removed again, and the
state of the time between arrives last.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from forums.records.stored import Comment, Post

from .content_hash import NO_TEXT, content_hash


class Revision(msgspec.Struct, kw_only=True):
    """A text that is not the present one."""

    first: datetime
    last: datetime
    text: Text | None  # None: as it is stored


class Text(msgspec.Struct, frozen=True, kw_only=True):
    """What a revision keeps."""

    title: str | None
    body: str
    body_html: str | None
    author: str | None
    edited_at: datetime | None


class MergedEntry(msgspec.Struct, kw_only=True):
    """A post or comment: as it is stored, and then, after `add`, as it has to be stored."""

    hash: str
    fetched_at: datetime
    first_seen_at: datetime
    changed_at: datetime | None
    deleted_at: datetime | None
    tombstone_at: datetime | None
    forum_id: str = ""  # of a post: what the newest state that knows it says
    text: Text | None = None  # the stored one, where it may become a revision
    revisions: dict[str, Revision] = {}
    item: Post | Comment | None = None  # whose fields the row gets; None: those that it has
    version: int = 0  # how often it was told of
    touched: set[str] = set()  # hashes of revisions that have to be written, or removed


def text_of(item: Post | Comment) -> Text:
    title = item.title if isinstance(item, Post) else None
    return Text(title=title, body=item.body, body_html=item.body_html, author=item.author, edited_at=item.edited_at)


def hash_of(item: Post | Comment) -> str:
    return content_hash(item.title, item.body) if isinstance(item, Post) else content_hash(None, item.body)


def first_entry(item: Post | Comment, digest: str) -> MergedEntry:
    """The row of something that is not stored yet."""
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
    """Take one more state into account. `digest` is its hash."""
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
    """A reading of the whole thread that began at `at` did not show it, unless a state that is as new did."""
    if at is not None and at > entry.fetched_at and (entry.deleted_at is None or at < entry.deleted_at):
        entry.deleted_at = at


def _removed_state(entry: MergedEntry, item: Post | Comment) -> None:
    at = item.fetched_at
    entry.tombstone_at = at if entry.tombstone_at is None else max(entry.tombstone_at, at)
    if entry.hash == NO_TEXT and at >= entry.fetched_at:  # the newest of what the site shows instead
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
        if earlier := entry.revisions.pop(digest, None):  # it is the text of before again
            entry.touched.add(digest)
            entry.changed_at = min(since, earlier.first)
    elif entry.changed_at is None:
        entry.changed_at = entry.fetched_at
    entry.item, entry.fetched_at = item, at
