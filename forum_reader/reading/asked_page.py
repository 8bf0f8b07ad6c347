"""Reads a page as the kind of page that was requested, and the page of a site's newest messages."""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec

from forum_reader.definition.pages import PageKind, RecentPageSpec
from forum_reader.page.response import in_web_encoding

from .page_rows import Asked, ahead, is_behind_the_end
from .page_values import Document, FieldCount
from .read_page import CommentsPage, IndexPage, ListPage, ThreadPage, read_comments, read_index, read_list, read_more, read_thread

if TYPE_CHECKING:
    from forum_reader.definition.site import Site
    from forum_reader.page.response import Response


__all__ = ["PAGES", "AnyPage", "Asked", "RecentMessage", "RecentPage", "read", "read_recent"]

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
