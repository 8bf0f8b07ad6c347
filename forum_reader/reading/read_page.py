"""Reads pages by a site file, for any software.

Pure: a site, a response (HTML or JSON, fetched or stored) and a request give a record. Raises UnreadablePage where nothing of the
page matches the site file.
"""

from __future__ import annotations

from datetime import datetime
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import msgspec

from forum_reader.definition.pages import IndexPageSpec, MorePageSpec, PageKind, RowsPage, ThreadPageSpec
from forum_reader.page.response import in_web_encoding

from . import page_rows
from .html_text import is_placeholder
from .page_rows import Ahead, Asked, RecentPage, ahead, is_behind_the_end, own_number, read_recent
from .page_values import Document, FieldCount

if TYPE_CHECKING:
    from forum_reader.definition.pages import CommentRows
    from forum_reader.definition.site import Site
    from forum_reader.page.response import Response

__all__ = [
    "PAGES", "AnyPage", "CommentsPage", "FieldCount", "IndexPage", "ListPage", "ListedForum", "ListedThread", "MoreComments",
    "ReadComment", "ReadPost", "ThreadPage", "read", "read_comments", "read_index", "read_list", "read_more", "read_thread",
]  # fmt: skip

_LONGEST_TOKEN = 200  # characters
SHARED = "~"
"""Between the id that several posts of a page share and the number of the second and further ones."""
NO_SIGN = "None@None"
"""Token of a row that shows neither replies nor a date: by it no change can be seen."""


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


def read_index(site: Site, response: Response, number: int | None = 1, *, root: Any = None) -> IndexPage:
    """Read the forums that a page of the index lists. `number` and `root` as in `read_comments`."""
    page = site.page_of("index", IndexPageSpec)
    doc = Document(site, page, response, root)
    place = Asked(kind="index", number=own_number(doc, page) if number is None else number)
    rows = [] if is_behind_the_end(doc, page, place.number) else doc.rows(page)
    forums: dict[str, ListedForum] = {}
    for values in doc.values_of(rows, page.fields):
        if values["id"] is not None and values["id"] not in forums:
            forums[values["id"]] = ListedForum(**(values | {"name": values.get("name") or values["id"]}))
    return IndexPage(forums=tuple(forums.values()), next=_ahead(doc, place, rows).next, fields=doc.counts())


def read_list(site: Site, response: Response, forum: str, number: int | None = 1, *, root: Any = None) -> ListPage:
    """Read the threads of a list page, each once, in the page's order. `number` and `root` as in `read_comments`."""
    page = site.pages.list
    doc = Document(site, page, response, root)
    place = Asked(kind="list", forum=forum, number=own_number(doc, page) if number is None else number)
    rows = [] if is_behind_the_end(doc, page, place.number) else doc.rows(page)
    threads: dict[str, ListedThread] = {}
    for values in doc.values_of(rows, page.fields):
        if values["id"] is None or values["id"] in threads:
            continue
        values["token"] = _short(values.get("token") or _token(doc, values))
        threads[values["id"]] = ListedThread(**values)
    after = _ahead(doc, place, rows)
    return ListPage(threads=tuple(threads.values()), next=after.next, pages=after.pages, fields=doc.counts())


def read_thread(site: Site, response: Response, thread: str) -> ThreadPage:
    """Read the opening post of a thread. Raises UnreadablePage where the page has none."""
    page = site.page_of("thread", ThreadPageSpec)
    doc = Document(site, page, response)
    post = _post(doc.values(doc.root, page.fields), thread)
    if not post.body and not post.deleted and post.title is None:
        raise page_rows.nothing_of("an opening post", page.fields)
    return ThreadPage(post=post, fields=doc.counts())


def read_comments(
    site: Site,
    response: Response,
    thread: str,
    number: int | None = 1,
    *,
    forum: str = "",
    url: str | None = None,
    opening: str = "",
    root: Any = None,
    classes: frozenset[str] | None = None,
    whole: bool = True,
) -> CommentsPage:
    """Read the comments of a page, the oldest first, answers after the post that they answer, and the opening post where it is
    on the page. `number` None: the page's own. `opening` as in `Asked`. `root` and `classes`: its tree and its classes, where
    these are known. `whole` = False: the next page, comments outside of the page and the HTML of posts are left out.
    """
    page = site.pages.comments
    doc = Document(site, page, response, root, thread=thread, classes=classes, with_html=whole)
    is_other = number is not None and is_behind_the_end(doc, page, number)
    number = own_number(doc, page) if number is None else number
    place = Asked(kind="comments", forum=forum, thread=thread, number=number, url=url)
    rows, read = ([], []) if is_other else _rows_with_values(doc, page)
    after = _ahead(doc, place, rows) if whole or page.order == "newest" else Ahead()
    is_forward = page.order == "oldest"
    if page.order == "newest":
        rows, read = rows[::-1], read[::-1]
    has_oldest = number == 1 if is_forward else after.next is None
    has_opening = page.first_is_post and has_oldest
    post = doc.values(doc.root, page.post) if page.post and (has_opening or number == 1) else None
    own: str | None = None  # the row's id of the opening post: an answer to it answers no comment
    if page.first_is_post and number == 1 and not rows:
        raise page_rows.nothing_of("an opening post", page.fields)
    is_again = page.first_is_post and page.repeats_post and is_forward and not has_opening
    if (has_opening or is_again) and rows:
        own = read[0]["id"]
    if has_opening and rows:
        post = read[0] | {"id": thread} | {name: value for name, value in (post or {}).items() if value is not None}
    size = page.per_page - page.repeats_post if page.per_page and is_forward else None  # number of comments
    before = 0 if has_oldest and number == 1 else None if size is None else (number - 1) * size
    first = None if before is None else before + (0 if page.first_is_post else 1)
    comments = _comments(rows, read, opening=own or opening, first=first, skips=has_opening or is_again)
    return CommentsPage(
        comments=tuple(comments.values()),
        post=_post(post, thread) if post and (own is not None or post.get("body") or post.get("deleted")) else None,
        post_id=own,
        next=after.next,
        pages=after.pages,
        total=after.total,
        left_out=_left_out(doc, page, read) if whole else (),
        fields=doc.counts(),
        has_numeric_dates=doc.has_numeric_dates,
    )


def read_more(site: Site, response: Response, place: Asked) -> CommentsPage:
    """Read the comments of a page that a thread's pages leave out; those without a parent on it answer `place.comment`."""
    page = site.page_of("more", MorePageSpec)
    doc = Document(site, page, response, thread=place.thread)
    rows, read = ([], []) if is_behind_the_end(doc, page, place.number) else _rows_with_values(doc, page)
    comments = _comments(rows, read, opening=None, first=None, skips=False)
    answered = place.comment if place.comment != place.thread else None  # an answer to the opening post answers no comment
    return CommentsPage(
        comments=tuple(
            msgspec.structs.replace(one, parent_id=one.parent_id or answered or None)
            for one in comments.values()
            if one.id != place.comment  # some pages begin with the answered comment
        ),
        next=_ahead(doc, place, rows).next,
        left_out=_left_out(doc, page, read),
        fields=doc.counts(),
    )


def _rows_with_values(doc: Document, page: CommentRows) -> tuple[list[page_rows.Row], list[dict[str, Any]]]:
    rows = page_rows.rows(doc, page)
    return rows, list(doc.values_of([row.node for row in rows], page.fields))


def _comments(
    rows: list[page_rows.Row], read: list[dict[str, Any]], *, opening: str | None, first: int | None, skips: bool
) -> dict[str, ReadComment]:
    """Return the rows' comments, each once. `first`: the first row's place in the thread; `skips`: it is the opening post."""
    numbers = page_rows.Numbers(read)
    comments: dict[str, ReadComment] = {}
    for at, (row, values) in enumerate(zip(rows, read, strict=True)):
        if values["id"] is None or (opening and values["id"] == opening and not skips):
            continue
        answered = row.parent_id or values.get("parent_id") or numbers.answered(values["id"])
        body = values.get("body") or ""
        given = {
            "body": body,
            "deleted": bool(values.get("deleted")) or is_placeholder(body),
            "parent_id": None if answered == opening else answered,
            "position": values.get("position") or (None if first is None else first + at),
        }
        kept = {name: value for name, value in values.items() if name != "load_more"}
        _add(comments, ReadComment(**(kept | given)))
    if skips and opening:
        comments.pop(opening, None)  # what the page repeats of it is left out, too
    return comments


def _add(comments: dict[str, ReadComment], one: ReadComment) -> None:
    """Add a comment, unless it is there: a page may repeat a post, whole or in part. Another post with the same id gets
    another one.
    """
    id_, times = one.id, 1
    while (known := comments.get(id_)) is not None:
        is_same = known.created_at is not None and (known.author, known.created_at) == (one.author, one.created_at)
        if is_same or known.body in one.body or one.body in known.body:
            return
        times += 1
        id_ = f"{one.id}{SHARED}{times}"
    comments[id_] = one if id_ == one.id else msgspec.structs.replace(one, id=id_)


def _left_out(doc: Document, page: CommentRows, read: list[dict[str, Any]]) -> tuple[MoreComments, ...]:
    """Return the ways to comments that are not on a page, each once."""
    of_rows = [MoreComments(more=values["load_more"], comment=values["id"] or "") for values in read if values.get("load_more")]
    of_page = [MoreComments(more=address) for address in doc.addresses(page.load_more)]
    return tuple({one.more + "\0" + one.comment: one for one in [*of_page, *of_rows]}.values())


def _post(values: dict[str, Any], thread: str) -> ReadPost:
    known = {name: values[name] for name in ReadPost.__struct_fields__ if values.get(name) is not None}
    return ReadPost(**({"id": thread} | known | ({"deleted": True} if is_placeholder(known.get("body", "")) else {})))


def _short(token: str) -> str:
    """Return a token as it is stored with each thread: a digest of a long one, as of a row that shows posts."""
    return token if len(token) <= _LONGEST_TOKEN else blake2b(token.encode("utf-8", "replace"), digest_size=16).hexdigest()


def _token(doc: Document, values: dict[str, Any]) -> str:
    """Return reply count and last activity; without a relative date ("2 hours ago"), which differs at each reading and would
    mark each thread as changed.
    """
    count, last = values.get("reply_count"), values.get("last_activity")
    if last is not None and "last_activity" in doc.moving and count is not None:
        return f"{count}@"
    return f"{count}@{last.isoformat() if last else None}"


def _ahead(doc: Document, place: Asked, rows: list[Any]) -> Ahead:
    return ahead(doc, doc.site.page_of(place.kind, RowsPage), place, len(rows))


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


def read(site: Site, response: Response, asked: Asked) -> AnyPage:
    """Read the page as its kind. Raises UnreadablePage."""
    response = in_web_encoding(response)
    if asked.kind == "index":
        return read_index(site, response, asked.number)
    if asked.kind == "list":
        return read_list(site, response, asked.forum, asked.number)
    if asked.kind == "recent":
        return read_recent(site, response, asked.number)
    if asked.kind == "thread":
        return read_thread(site, response, asked.thread)
    if asked.kind == "more":
        return read_more(site, response, asked)
    return read_comments(site, response, asked.thread, asked.number, forum=asked.forum, url=asked.url, opening=asked.opening)
