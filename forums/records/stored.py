"""Stored forms of the forum crawl: start tasks, marks of scans, and items of the item stream (posts, comments, forums, and
reports of scans and checks), validated when they are parsed.

The fields of items are the columns of the tables of the same names, described in `tables.py`. Unknown fields are ignored, so that
a newer spider can feed an older writer, and later fields have defaults, so that an older spider can feed this writer.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from redis_components.errors import TrawlError

ListMode = Literal["scan", "deep", "backfill"]
ScanMode = Literal[ListMode, "index", "recent", "back"]
ReadMode = Literal["new", "changed", "check", "backfill"]
Part = Literal["post", "comments"]

INDEX = "*"
"""Name in place of the forum, in a task and in a report, of a scan of the pages that list the forums."""
RECENT = "+"
"""Name in place of the forum for the page of the newest messages."""
NO_FORUMS = (INDEX, RECENT)


NEWEST_FIELDS = ("forum", "token", "url", "replies")
"""Fields of a `PostTask` that a waiting full reading takes from a newer task for the same thread."""


class ForumTask(msgspec.Struct, omit_defaults=True):
    """Start task of `forum_list`: scan one forum, or with mode "index" the pages that list the site's forums.

    - scan: until it overlaps the last complete scan, at most `limits.pages_per_scan` pages;
    - deep: the same, at most `limits.deep_pages`, which closes a gap; with `pages` exactly that many;
    - backfill: down to `since`, for old threads, which go to the lane "later";
    - index: `forum` is INDEX;
    - recent: `forum` is RECENT: the page with the newest messages of the site. A task of the version before may
      have the mode "back" in its place.
    """

    site: str
    forum: str
    mode: ScanMode = "scan"
    pages: int | None = None
    """Maximum number of list pages; None: the site's limits."""
    since: str | None = None
    """Backfill: ISO 8601; threads without activity since then are left out. None: all."""


class PostTask(msgspec.Struct, omit_defaults=True):
    """Start task of `forum_detail`: read one thread.

    - new, backfill: the whole thread;
    - changed: the comment pages from the one that holds the last stored comment on;
    - check: the whole thread once more, to notice edits and deletions.
    """

    site: str
    post: str
    forum: str | None = None
    mode: ReadMode = "new"
    only: Part | None = None
    """The one part that is read again; the thread's record stays as it is."""
    token: str | None = None
    """The list row's change token, which is stored in the thread's record after the reading."""
    url: str | None = None
    """Link of the list row, for sites whose thread URLs cannot be built from the id."""
    page: int = 1
    """Comment page to begin with."""
    after: str | None = None
    """Id of the last stored comment."""
    known: int = 0
    """Comments of the thread that are stored, or that the site claimed then."""
    replies: int | None = None
    """Comments that the list claims."""
    expected: int | None = None
    """Of these, the number since the last stored one."""
    short: int = 0
    """Earlier consecutive readings that saw fewer than the list claimed."""
    cursor: str | None = None
    """URL of the page to begin with, on sites without numbered page URLs."""
    own: str | None = None
    """The thread's id on its own page, if it differs from the list's, `post`."""
    author: str | None = None
    """Author of the opening post, from the list."""
    created_at: str | None = None
    """Time of the opening post, from the list: ISO 8601."""
    last_activity: str | None = None
    """Time of the last post, from the list: ISO 8601."""


class FrontRow(msgspec.Struct, frozen=True, array_like=True):
    """A thread on the first page."""

    id: str
    token: str
    at: datetime | None  # last activity; None if the row's position does not depend on it
    title: str  # digest; empty if the list shows none
    url: str | None = None


# 255 characters are at most 1,020 bytes: two of them fit into PostgreSQL's index rows (2,704 bytes), with any ids.
Name = Annotated[str, Meta(min_length=1, max_length=255)]
Moment = Annotated[datetime, Meta(tz=True)]
BigInt = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Count = Annotated[int, Meta(ge=0, le=2**31 - 1)]


class InvalidItem(TrawlError):
    """An item lacks a field or has a wrong one; it is set aside with this reason, and other items are stored."""


class Post(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="post"):
    """A thread's opening post, as it was at `fetched_at`."""

    site: Name
    id: Name
    forum_id: Name | None  # null: not on this page; the stored one stays
    title: str
    body: str
    author: str | None
    created_at: Moment | None
    views: BigInt | None
    reply_count: BigInt | None
    last_reply_at: Moment | None
    url: str
    fetched_at: Moment
    body_html: str | None = None
    sticky: bool = False
    edited_at: Moment | None = None
    deleted: bool = False  # removed on the site, which shows a placeholder: the stored text stays


class Comment(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="comment"):
    """A reply, as it was at `fetched_at`."""

    site: Name
    id: Name
    post_id: Name
    parent_id: Name | None
    author: str | None
    body: str
    created_at: Moment | None
    url: str
    fetched_at: Moment
    body_html: str | None = None
    edited_at: Moment | None = None
    deleted: bool = False  # as for a post
    position: BigInt | None = None


class Forum(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="forum"):
    """A forum, as its site's index listed it at `fetched_at`."""

    site: Name
    id: Name
    name: str
    url: str | None = None
    parent_id: Name | None = None
    threads: BigInt | None = None
    fetched_at: Moment


class Scan(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="scan"):
    """The report of one scan of a forum's list pages."""

    site: Name
    forum_id: Name
    started_at: Moment
    finished_at: Moment
    pages: Count
    threads: Count
    outcome: Literal["complete", "failed", "gap"]
    reason: str | None
    mode: ScanMode = "scan"
    new: Count = 0
    changed: Count = 0
    stopped: Literal["overlap", "end", "limit", "error"] | None = None
    newest_at: Moment | None = None
    oldest_at: Moment | None = None
    front: tuple[FrontRow, ...] = ()  # its first page, for the next scan; not in the database


class Check(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="check"):
    """The report of one reading of a thread, sent after its items.

    If it was whole and consistent, stored comments of the thread that it did not show were removed on the site.
    """

    site: Name
    id: Name  # of the thread
    forum_id: Name | None = None
    started_at: Moment
    finished_at: Moment
    mode: ReadMode
    first_page: Count
    last_page: Count
    requests: Count
    comments: Count
    total: BigInt | None = None
    whole: bool
    consistent: bool
    gone: bool = False
    token: str | None = None
    last_comment_id: Name | None = None
    cursor: str | None = None
    listed: Count | None = None  # comments that were seen, in the list's way of counting
    short: Count = 0  # consecutive readings that saw fewer than the list claimed
    reason: str | None = None
    listed_as: Name | None = None  # the thread's id in the list, if its page has another one; tokens belong to it
    reply_count: BigInt | None = None  # of the thread, from the list that led to the reading
    last_reply_at: Moment | None = None  # from that list, too
    asked: str | None = None  # digest of the site file that made the request (`file_digest`)
    walled: bool = False  # its first pages only are for guests; `reason` has the rest
    counted_back: bool = False  # positions of its comments are counted from the newest one, which has 0, the one before it -1


Item = Post | Comment | Forum | Scan | Check


_AT_FIELD = re.compile(r"(?P<what>.+) - at `\$\.(?P<field>\w+)`")
_SHOWN = 80  # characters of a wrong value that the reason quotes


def fields_in(payload: bytes) -> dict[str, Any]:
    """Decode an item that need not be valid; no fields where it is none."""
    try:
        raw = msgspec.json.decode(payload)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return {}
    return raw if isinstance(raw, dict) else {}


def reason_against(payload: bytes, error: Exception) -> str:
    """Return why an item is not valid, with the field and its value."""
    text = str(error).replace("\n", "\\n")  # it may quote a value; a reason is one line
    if not isinstance(error, msgspec.ValidationError):
        return f"not JSON: {text}"
    found = _AT_FIELD.fullmatch(text)
    if not found:
        return text.replace("`", "")
    field = found["field"]
    value = repr(fields_in(payload).get(field))
    if len(value) > _SHOWN:
        value = value[:_SHOWN] + "…"
    if field == "kind":
        return f"kind: {value} is unknown; known are 'post', 'comment', 'forum', 'scan' and 'check'"
    return f"{field}: {found['what'].replace('`', '')}; the value is {value}"


class Marks(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Progress of the complete scans of a forum. Times are activities as the site shows them."""

    scanned_at: datetime
    """Start of the last scan."""
    newest: datetime | None = None
    """A complete scan saw all activity before this time; None: the list shows no times."""
    until: datetime | None = None
    """Lower end of the next scan; older than `newest` if a range is to be read twice."""
    failed_pages: int = 0
    """Pages read by later scans that did not complete."""
    front: tuple[FrontRow, ...] = ()
    """The first page of the last complete scan."""
