"""What a page was asked for, and reading it as that."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from forums.sites.definition.pages import PageKind

from .read_page import (
    CommentsPage,
    IndexPage,
    ListPage,
    ThreadPage,
    read_comments,
    read_index,
    read_list,
    read_thread,
)
from .recent_page import RecentPage, read_recent

if TYPE_CHECKING:
    from scrapy.http import Response

    from forums.sites.definition.site import Site

AnyPage = IndexPage | ListPage | ThreadPage | CommentsPage | RecentPage
PAGES: dict[PageKind, type[AnyPage]] = {
    "index": IndexPage,
    "list": ListPage,
    "thread": ThreadPage,
    "comments": CommentsPage,
    "recent": RecentPage,
}
"""What is read of each kind of page."""


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of page, and of what: `number` from 1, `url` the thread's own, where its list gave one."""

    kind: PageKind
    forum: str = ""
    thread: str = ""
    number: int = 1
    url: str | None = None


def read(site: Site, response: Response, asked: Asked) -> AnyPage:
    """What the page holds. Raises UnreadablePage."""
    if asked.kind == "index":
        return read_index(site, response, asked.number)
    if asked.kind == "list":
        return read_list(site, response, asked.forum, asked.number)
    if asked.kind == "recent":
        return read_recent(site, response, asked.number)
    if asked.kind == "thread":
        return read_thread(site, response, asked.thread)
    return read_comments(site, response, asked.thread, asked.number, forum=asked.forum, url=asked.url)
