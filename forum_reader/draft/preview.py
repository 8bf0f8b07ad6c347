"""Preview of a site file: a few threads as the new file reads them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from forum_reader.definition.errors import SiteError
from forum_reader.reading import isolated
from forum_reader.reading.asked_page import Asked
from forum_reader.reading.read_page import CommentsPage, ListPage
from forums.sites.http.fetch import FetchFailed

if TYPE_CHECKING:
    from scrapy.http import TextResponse

    from forum_reader.definition.site import Site
    from forum_reader.reading.read_page import ListedThread, ReadComment, ReadPost

MOST = 5
"""Threads."""


class PreviewedThread(msgspec.Struct, frozen=True, kw_only=True):
    """A thread as the file reads its list and its first page: `posts` with the opening one; `without`: fields that some posts
    lack; `problem`: the reason why nothing was read.
    """

    id: str
    title: str | None
    url: str
    posts: int = 0
    author: str | None = None
    published: datetime | None = None
    text: str | None = None
    replies: int | None = None
    next: str | None = None
    without: tuple[str, ...] = ()
    problem: str | None = None


Get = Callable[[str], Awaitable["TextResponse"]]


async def preview(site: Site, get: Get, forum: str) -> tuple[list[PreviewedThread], str | None]:
    """Return up to five threads of a forum, or none and the reason."""
    try:
        response = await get(site.list_url(forum))
        listed = await isolated.read_soon(site, response, Asked(kind="list", forum=forum))
    except (FetchFailed, SiteError) as exc:
        return [], str(exc)
    if not isinstance(listed, ListPage) or not listed.threads:
        return [], f"{site.list_url(forum)}: no threads"
    step = max(1, len(listed.threads) // MOST)
    return [await _thread(site, get, forum, thread) for thread in listed.threads[::step][:MOST]], None


async def _thread(site: Site, get: Get, forum: str, thread: ListedThread) -> PreviewedThread:
    url = site.url("comments", forum=forum, thread=thread.id, url=thread.url)
    shown = PreviewedThread(id=thread.id, title=thread.title, url=url, replies=thread.reply_count)
    try:
        asked = Asked(kind="comments", forum=forum, thread=thread.id, url=thread.url)
        page = await isolated.read_soon(site, await get(url), asked)
    except (FetchFailed, SiteError) as exc:
        return msgspec.structs.replace(shown, problem=str(exc).removeprefix(f"{url}: "))
    if not isinstance(page, CommentsPage):
        return shown
    posts: list[ReadPost | ReadComment] = [*([page.post] if page.post else []), *page.comments]
    first = posts[0] if posts else None
    return msgspec.structs.replace(
        shown,
        posts=len(posts),
        author=first.author if first else thread.author,
        published=first.created_at if first else thread.created_at,
        text=first.body if first else None,
        next=page.next,
        without=tuple(
            name
            for name in ("author", "created_at", "body")
            if any(not getattr(post, name) for post in posts if not post.deleted)
        ),
        problem=None if posts else "no posts",
    )
