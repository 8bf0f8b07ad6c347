"""Forums of unknown software that show their newest posts first, or the last page of a thread in place of the first, or begin
each page with the opening post.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from math import ceil

from tests.support.unknown_forums import (
    LIST_PAGE,
    THREAD_PAGE,
    Hex,
    Lists,
    Tables,
    Thread,
    UnknownForum,
    document,
    pager,
    piece,
    split,
)

Make = Callable[[], UnknownForum]


def newest_first(make: type[UnknownForum], *, within_pages: bool) -> Make:
    """A make whose threads begin with their newest page, its newest post first where `within_pages`."""

    class Backward(make):  # type: ignore[valid-type, misc]
        def page(self, path: str) -> str | None:
            if not re.search("thread|topic", path):
                return super().page(path)
            return self.shown.page(path)

        @cached_property
        def shown(self) -> UnknownForum:
            shown = make()
            shown.threads = [replace(one, posts=_turned(one, within_pages=within_pages)) for one in shown.threads]
            return shown

    return Backward


def _turned(thread: Thread, *, within_pages: bool) -> tuple:
    posts = thread.posts[::-1]
    if within_pages:
        return posts
    return tuple(post for n in range(0, len(posts), THREAD_PAGE) for post in posts[n : n + THREAD_PAGE][::-1])


def repeating(make: type[UnknownForum]) -> Make:
    """A make of which each page of a thread begins with the opening post."""

    class Repeating(make):  # type: ignore[valid-type, misc]
        def page(self, path: str) -> str | None:
            if not re.search("thread|topic", path):
                return super().page(path)
            return self.shown.page(path)

        @cached_property
        def shown(self) -> UnknownForum:
            shown = make()
            shown.threads = [replace(one, posts=_repeated(one)) for one in shown.threads]
            return shown

    return Repeating


def _repeated(thread: Thread) -> tuple:
    first, *others = thread.posts
    size = THREAD_PAGE - 1
    return tuple(post for n in range(0, max(1, len(others)), size) for post in (first, *others[n : n + size]))


class Blog(UnknownForum):
    """Articles with comments below; the pages of comments are numbered from the oldest one, and the article shows the last."""

    boards = ("all",)
    size = 3

    def page(self, path: str) -> str | None:
        address, number = split(path)
        if address == "/":
            rows = "".join(
                f'<article class="entry"><h2><a href="/read/{t.id}/">{t.title}</a></h2><p class="meta">'
                f'{len(t.posts) - 1} comments, last <time datetime="{t.last.at.isoformat()}">{t.last.at:%d %b}</time></article>'
                for t in piece(self.threads, number, LIST_PAGE)
            )
            return document("Yard", f"<h1>Yard</h1><main>{rows}</main>{pager('/', number, 40, LIST_PAGE, 'Older')}")
        parts = address.strip("/").split("/")
        thread = next((one for one in self.threads if parts[:2] == ["read", one.id]), None)
        if thread is None:
            return None
        count = ceil((len(thread.posts) - 1) / self.size)
        number = int(parts[2].removeprefix("page-")) if parts[2:] else count
        return self._article(thread, number, count)

    def _article(self, thread: Thread, number: int, count: int) -> str:
        first = thread.posts[0]
        comments = "".join(
            f'<li class="comment" id="comment-{p.id}"><cite class="author">{p.author}</cite> '
            f'<time datetime="{p.at.isoformat()}">{p.at:%d %B}</time><div class="words"><p>{p.text}</p></div></li>'
            for p in piece(list(thread.posts[1:]), number, self.size)
        )
        return document(
            f"{thread.title} - Yard",
            f'<article><h1>{thread.title}</h1><p class="meta">By <span class="author">{first.author}</span> on '
            f'<time datetime="{first.at.isoformat()}">{first.at:%d %B}</time></p><div class="content"><p>{first.text}</p></div>'
            f'</article><ol class="comments">{comments}</ol>{self._pages(thread, number, count)}',
        )

    def _pages(self, thread: Thread, number: int, count: int) -> str:
        links = ""
        if number > 1:
            links += (
                f'<div class="nav-previous"><a href="/read/{thread.id}/page-{number - 1}#comments">← Older comments</a></div>'
            )
        if number < count:
            links += f'<div class="following"><a href="/read/{thread.id}/page-{number + 1}#comments">Newer comments →</a></div>'
        return f'<nav class="comments-pages">{links}</nav>' if count > 1 else ""


class NumberedBlog(Blog):
    """The same with numbers for links."""

    def _pages(self, thread: Thread, number: int, count: int) -> str:
        links = (
            f'<span class="current">{n}</span>' if n == number else f'<a class="number" href="/read/{thread.id}/page-{n}">{n}</a>'
            for n in range(1, count + 1)
        )
        return f'<nav class="comments-pages">{" ".join(links)}</nav>' if count > 1 else ""


BACKWARDS: dict[str, Make] = {
    "tables-newest": newest_first(Tables, within_pages=True),
    "hex-newest": newest_first(Hex, within_pages=True),
    "lists-newest": newest_first(Lists, within_pages=True),
    "lists-newest-page": newest_first(Lists, within_pages=False),
    "tables-repeating": repeating(Tables),
    "hex-repeating": repeating(Hex),
    "lists-repeating": repeating(Lists),
    "blog": Blog,
    "numbered-blog": NumberedBlog,
}
