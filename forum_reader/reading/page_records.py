"""Records: what a page is asked for, and what a page that was read by a site file holds."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from forum_reader.definition.pages import PageKind


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A requested page: its kind, forum and thread; `number` from 1; `url`: the thread's own, where its list gave one. Of
    comments that a page leaves out: `more` from that page, and `comment` that they answer. `opening`: the opening post's id among
    the comments, where an earlier page showed it.
    """

    kind: PageKind
    forum: str = ""
    thread: str = ""
    number: int = 1
    url: str | None = None
    comment: str = ""
    more: str = ""
    opening: str = ""

    @property
    def names(self) -> dict[str, Any]:
        """Return the values of the names in the templates of addresses."""
        return {name: value for name, value in msgspec.structs.asdict(self).items() if name != "opening"}


class FieldCount(msgspec.Struct, frozen=True, kw_only=True):
    """Count of a field on a page: `empty` of `rows` rows had no value."""

    rows: int
    empty: int


class ListedForum(msgspec.Struct, frozen=True, kw_only=True):
    """A forum, as the index lists it."""

    id: str
    name: str
    url: str | None = None
    parent_id: str | None = None
    threads: int | None = None
    last_activity: datetime | None = None


class ListedThread(msgspec.Struct, frozen=True, kw_only=True):
    """A thread, as a list page shows it. `token` changes whenever the thread does."""

    id: str
    token: str
    url: str | None = None
    title: str | None = None
    author: str | None = None
    reply_count: int | None = None
    created_at: datetime | None = None
    last_activity: datetime | None = None
    sticky: bool = False


class ReadPost(msgspec.Struct, frozen=True, kw_only=True):
    """An opening post. `body` is text; `body_html` the original where it was HTML."""

    id: str | None = None
    forum_id: str | None = None
    title: str | None = None
    body: str = ""
    body_html: str | None = None
    author: str | None = None
    created_at: datetime | None = None
    edited_at: datetime | None = None
    views: int | None = None
    reply_count: int | None = None
    last_activity: datetime | None = None
    sticky: bool = False
    deleted: bool = False


class ReadComment(msgspec.Struct, frozen=True, kw_only=True):
    """A comment. `position` counts from 1 in the order of the thread's pages; a removed comment may have kept its place."""

    id: str
    parent_id: str | None = None
    body: str = ""
    body_html: str | None = None
    author: str | None = None
    created_at: datetime | None = None
    edited_at: datetime | None = None
    deleted: bool = False
    position: int | None = None


class IndexPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page of the index; `next`: the URL of the next one."""

    forums: tuple[ListedForum, ...]
    next: str | None = None
    fields: dict[str, FieldCount] = {}


class ListPage(msgspec.Struct, frozen=True, kw_only=True):
    """A list page; `next`: the URL of the next one; `pages`: their number, where the site shows it."""

    threads: tuple[ListedThread, ...]
    next: str | None = None
    pages: int | None = None
    fields: dict[str, FieldCount] = {}


class ThreadPage(msgspec.Struct, frozen=True, kw_only=True):
    """The page of an opening post."""

    post: ReadPost
    fields: dict[str, FieldCount] = {}


class MoreComments(msgspec.Struct, frozen=True, kw_only=True):
    """Comments that a page leaves out: `more` leads to them, `comment` is the one that they answer, if any."""

    more: str
    comment: str = ""


class CommentsPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page of comments, with the opening post where it is on it; `total`: the number of comments as the site shows it.
    `post_id`: the opening post's id among the comments, where it is the first of them. `left_out` leads to comments outside of
    the page. `has_numeric_dates`: the site's language decided the order of day and month.
    """

    comments: tuple[ReadComment, ...]
    post: ReadPost | None = None
    post_id: str | None = None
    next: str | None = None
    pages: int | None = None
    total: int | None = None
    left_out: tuple[MoreComments, ...] = ()
    fields: dict[str, FieldCount] = {}
    has_numeric_dates: bool = False


class RecentMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message, or a thread, on the page of the newest. `mark` identifies it, `digest` identifies its state. `id` is None where
    the rows are threads. `parent_id` is None for answers to the opening post, and where `has_unknown_parent`.
    """

    mark: str
    digest: str
    thread: str
    forum_id: str | None = None
    id: str | None = None
    url: str | None = None
    token: str | None = None
    reply_count: int | None = None
    opening: bool = False
    body: str | None = None
    body_html: str | None = None
    parent_id: str | None = None
    has_unknown_parent: bool = False
    author: str | None = None
    created_at: datetime | None = None
    edited_at: datetime | None = None
    deleted: bool = False


class RecentPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page of the newest messages, in its order; `next`: the URL of the next one."""

    messages: tuple[RecentMessage, ...]
    next: str | None = None
    fields: dict[str, FieldCount] = {}


AnyPage = IndexPage | ListPage | ThreadPage | CommentsPage | RecentPage
PAGES: dict[PageKind, type[AnyPage]] = {
    "index": IndexPage,
    "list": ListPage,
    "thread": ThreadPage,
    "comments": CommentsPage,
    "more": CommentsPage,
    "recent": RecentPage,
}
"""The result of reading each kind of page."""
