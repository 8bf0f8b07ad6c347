"""Rows of a page in reading order, each with the id of the comment that it answers, and the address of the next page; and the
messages of a page of the newest ones.
"""

from __future__ import annotations

import hashlib
import math
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urldefrag

import msgspec

from forum_reader.definition import page_requests
from forum_reader.definition.page_requests import apart, with_body
from forum_reader.definition.pages import PageKind, RecentPageSpec, RowsPage
from forum_reader.errors import UnreadablePage

from .html_text import parents_of
from .page_values import Document, FieldCount, not_too_many

if TYPE_CHECKING:
    from forum_reader.definition.pages import CommentRows
    from forum_reader.definition.site import Site
    from forum_reader.page.response import Response


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


class Ahead(msgspec.Struct, frozen=True, kw_only=True):
    """Pages after a page, as the page shows them."""

    next: str | None = None
    pages: int | None = None
    total: int | None = None


def is_behind_the_end(doc: Document, page: RowsPage, number: int) -> bool:
    """Return True if the site sent another page than was requested, as some do behind the last one."""
    shown = doc.value(page.current, "int")
    return shown is not None and shown != number


def own_number(doc: Document, page: RowsPage) -> int:
    """Return the page's number from the page, else from its address; 1 where neither has it."""
    shown = doc.value(page.current, "int")
    return shown if shown is not None and shown > 0 else page_requests.number_in(doc.url, page.url, page.per_page)


def ahead(doc: Document, page: RowsPage, place: Asked, rows: int) -> Ahead:
    """Find the next page of a page with `rows` rows, by the site file: by link, cursor, number of pages, total, or until a page
    is empty.
    """
    total = doc.value(page.total, "int")
    pages = doc.value(page.pages, "int")
    if pages is None and total is not None and page.per_page:
        pages = max(1, math.ceil(total / page.per_page))
    return Ahead(next=_next(doc, page, place, rows, pages), pages=pages, total=total)


def _next(doc: Document, page: RowsPage, place: Asked, rows: int, pages: int | None) -> str | None:
    if page.next is not None:
        link = doc.value(page.next, "url")
        link = urldefrag(link).url if link else None
        if link == urldefrag(doc.url).url:  # the last page of some sites links to itself
            return None
        return link if link is None or page.body is None else with_body(link, apart(_address(doc, place))[1])
    if page.cursor is not None:
        cursor = doc.value(page.cursor, "text")  # some have one on the last page, too
        goes_on = rows > 0 and not _is_short(page, rows) and (page.has_more is None or doc.value(page.has_more, "bool"))
        return _address(doc, place, cursor) if cursor and goes_on else None
    if not page.is_numbered:
        return None
    return _address(doc, place) if _goes_on(doc, page, place, rows, pages) else None


def _goes_on(doc: Document, page: RowsPage, place: Asked, rows: int, pages: int | None) -> bool:
    if page.has_more is not None:
        return bool(doc.value(page.has_more, "bool"))
    if page.pages is not None or page.total is not None:
        return pages is not None and place.number < pages
    return rows > 0 and not _is_short(page, rows)


def _is_short(page: RowsPage, rows: int) -> bool:
    return page.ends == "short" and rows < (page.per_page or 0)


def _address(doc: Document, place: Asked, cursor: str | None = None) -> str:
    """Return the address of the page after this one."""
    after = msgspec.structs.replace(place, number=place.number + 1)
    return doc.site.url(**after.names, cursor=cursor)


_DEEPEST = 500  # levels; a page that nests deeper is cut there


class Row(msgspec.Struct, frozen=True):
    """A row, and the id of the row around it."""

    node: Any
    parent_id: str | None


class Numbers:
    """Numbers of the posts of a page, by which answers refer to posts. They are removed from the rows' values."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self._ids: dict[str, str] = {}
        self._answers: dict[str, str] = {}
        for values in rows:
            number, answers = values.pop("number", None), values.pop("parent_number", None)
            if number is not None and values["id"] is not None:
                self._ids.setdefault(number, values["id"])
            if answers is not None and values["id"] is not None:
                self._answers.setdefault(values["id"], answers)

    def answered(self, comment_id: str) -> str | None:
        """Return the id of the post that a row answers, by its number; None where that is unknown, or the row itself."""
        found = self._ids.get(self._answers.get(comment_id, ""))
        return None if found == comment_id else found


def rows(doc: Document, page: CommentRows) -> list[Row]:
    """Return all comments of a page."""
    found = doc.rows(page)
    if page.children is not None:
        return _of_json(doc, page, found)
    if page.nested:
        return _of_html(doc, page, found)
    return [Row(node, None) for node in found]


def nothing_of(what: str, fields: Any) -> UnreadablePage:
    """Return the error for a page without `what`, with the selectors that found nothing."""
    selectors = ", ".join(f"{name} = {' or '.join(field.select)}" for name, field in fields.declared if name in ("id", "body"))
    return UnreadablePage(f"has nothing of {what}: looked for {selectors}")


def _of_json(doc: Document, page: CommentRows, top: list[Any]) -> list[Row]:
    listed: list[Row] = []
    waiting: list[tuple[Any, str | None, int]] = [(node, None, 0) for node in reversed(top)]
    while waiting:
        node, parent_id, depth = waiting.pop()
        listed.append(Row(node, parent_id))
        if page.children is None or depth >= _DEEPEST:
            continue
        own_id = doc.peek(page.fields.id, node)
        for answers in doc.find(page.children, node):
            if isinstance(answers, list):
                waiting += [(answer, own_id, depth + 1) for answer in reversed(answers) if answer is not None]
    return not_too_many(listed)


def _of_html(doc: Document, page: CommentRows, found: list[Any]) -> list[Row]:
    parents = parents_of(found)
    around = frozenset(parents.values())
    ids = {row: doc.peek(page.fields.id, row) for row in found if row in around}
    return [Row(row, ids.get(parents[row])) for row in found]


_DIGEST = 8  # bytes


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
    title: str | None = None
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


def read_recent(site: Site, response: Response, number: int = 1) -> RecentPage:
    """Read the messages of a page, each once. Raises UnreadablePage."""
    page = site.page_of("recent", RecentPageSpec)
    doc = Document(site, page, response)
    place = Asked(kind="recent", number=number)
    rows = [] if is_behind_the_end(doc, page, place.number) else doc.rows(page)
    rows_values = list(doc.values_of(rows, page.fields))
    numbers = {(one["thread"], one["number"]): one for one in rows_values if one.get("number") is not None}
    messages: dict[str, RecentMessage] = {}
    for values in rows_values:
        if values["thread"] is not None:
            message = _message(values, numbers)
            messages.setdefault(message.mark, message)
    return RecentPage(messages=tuple(messages.values()), next=ahead(doc, page, place, len(rows)).next, fields=doc.counts())


def _message(values: dict[str, Any], numbers: dict[tuple[str, str], dict[str, Any]]) -> RecentMessage:
    known = {name: values[name] for name in RecentMessage.__struct_fields__ if values.get(name) is not None}
    created, edited = values.get("created_at"), values.get("edited_at")
    if (own := values.get("id")) is not None:
        mark = f"{own}"
    else:
        mark = f"{values['thread']} {values.get('token') or values.get('reply_count')} {created and created.isoformat()}"
    state = (values.get("body") or "", edited.isoformat() if edited else "", str(bool(values.get("deleted"))))
    answered = numbers.get((values["thread"], values.get("parent_number") or ""))
    parent = values.get("parent_id") or (answered or {}).get("id")
    if answered is not None and answered.get("opening"):
        parent = None
    return RecentMessage(
        **known
        | {
            "mark": mark,
            "digest": hashlib.blake2b("\x1f".join(state).encode("utf-8", "surrogatepass"), digest_size=_DIGEST).hexdigest(),
            "parent_id": parent,
            "has_unknown_parent": values.get("parent_number") is not None and parent is None and answered is None,
        }
    )
