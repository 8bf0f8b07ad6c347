"""Preview of a site file: a few threads as the new file reads them."""

from __future__ import annotations

import tomllib
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from forum_reader.definition import layers
from forum_reader.definition.load import site_of
from forum_reader.errors import FetchFailed, SiteError
from forum_reader.reading.asked_page import AnyPage, Asked, read
from forum_reader.reading.read_page import CommentsPage, ListPage
from forum_reader.reading.reading_budget import strictly

from .draft_file import Draft, text_of

if TYPE_CHECKING:
    from forum_reader.definition.site import Site
    from forum_reader.page.response import Get, TextResponse
    from forum_reader.reading.read_page import ListedThread, ReadComment, ReadPost

MOST = 5
"""Threads."""
_TRIED = 3  # forums of which one has threads to show


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


class Preview(NamedTuple):
    """Threads as the new file reads them, or the reason why it reads none."""

    threads: list[PreviewedThread]
    problem: str | None

    @property
    def is_read(self) -> bool:
        """Return True if a thread was read."""
        return any(thread.problem is None for thread in self.threads)


def site_of_draft(draft: Draft) -> Site:
    """Return the site of a file with this content. Raises SiteError."""
    return site_of(layers.read(Path(f"{draft.name}.toml"), tomllib.loads(text_of(draft))))


async def preview_of(draft: Draft, get: Get) -> Preview:
    """Read five threads as the file will read them."""
    if not draft.forums:
        return Preview([], None)
    try:
        site = site_of_draft(draft)
    except SiteError as exc:
        return Preview([], str(exc))
    tried = [draft.wrapper.tried] if draft.wrapper else [forum.id for forum in draft.forums[:_TRIED]]
    shown = Preview([], None)
    for forum in tried:  # the first one may be empty
        shown = Preview(*await preview(site, get, forum))
        if shown.threads:
            break
    return shown


async def preview(site: Site, get: Get, forum: str) -> tuple[list[PreviewedThread], str | None]:
    """Return up to five threads of a forum, or none and the reason."""
    try:
        listed = _read(site, await get(site.list_url(forum)), Asked(kind="list", forum=forum))
    except (FetchFailed, SiteError) as exc:
        return [], str(exc)
    if not isinstance(listed, ListPage) or not listed.threads:
        return [], f"{site.list_url(forum)}: no threads"
    step = max(1, len(listed.threads) // MOST)
    return [await _thread(site, get, forum, thread) for thread in listed.threads[::step][:MOST]], None


def _read(site: Site, response: TextResponse, asked: Asked) -> AnyPage:
    with strictly():  # a page that takes longer is not a good example
        return read(site, response, asked)


async def _thread(site: Site, get: Get, forum: str, thread: ListedThread) -> PreviewedThread:
    url = site.url("comments", forum=forum, thread=thread.id, url=thread.url)
    shown = PreviewedThread(id=thread.id, title=thread.title, url=url, replies=thread.reply_count)
    try:
        asked = Asked(kind="comments", forum=forum, thread=thread.id, url=thread.url)
        page = _read(site, await get(url), asked)
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
