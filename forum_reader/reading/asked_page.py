"""Reads a page as the kind of page that was requested."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forum_reader.definition.pages import PageKind
from forum_reader.page.web_encoding import in_web_encoding

from .next_page import Asked
from .read_page import CommentsPage, IndexPage, ListPage, ThreadPage, read_comments, read_index, read_list, read_more, read_thread
from .recent_page import RecentPage, read_recent

if TYPE_CHECKING:
    from forum_reader.definition.site import Site
    from forum_reader.page.response import Response

__all__ = ["PAGES", "AnyPage", "Asked", "read"]

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
    return read_comments(site, response, asked.thread, asked.number, forum=asked.forum, url=asked.url)
