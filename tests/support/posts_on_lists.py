"""Boards of our own making whose lists are easily taken for something else: trees of titles, boards that show posts, articles
with nested comments, walls, and flat boards.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import ClassVar

from .unknown_forums import Post, Thread, UnknownForum, document, piece, split

PER_PAGE = 8


class PostsOnLists(UnknownForum):
    """`start`: the address that a person gives; `titled`: threads have titles."""

    boards = ("all",)
    start: ClassVar[str] = "/"
    titled: ClassVar[bool] = True

    def thread_of(self, number: str | None) -> Thread | None:
        return next((one for one in self.threads if one.id == number), None)

    def rows(self, row: Callable[[Thread], str], number: int, link: str) -> str | None:
        """Return the rows of a page of the list; behind all but the last page `link`, in which `{}` is the next page's number."""
        shown = "".join(map(row, piece(self.threads, number, PER_PAGE)))
        return shown + (link.format(number + 1) if number * PER_PAGE < len(self.threads) else "") if shown else None


class TreesOfTitles(PostsOnLists):
    """A message a page; a list of all titles, each with name and date as a signature, answers with the title of the thread."""

    start = "/forum/"

    def __init__(self) -> None:
        super().__init__()
        del self.threads[10:]

    def page(self, path: str) -> str | None:
        address, number = split(path)
        if address == "/forum/":
            trees = self.rows(self._tree, number, '<a href="/forum/?page={}">Older messages</a>')
            return document("Yard talk", f"<h1>Yard talk</h1>{trees}") if trees else None
        found = re.fullmatch(r"/forum/(\d+)\.html", address)
        for thread in self.threads if found else ():
            for n, post in enumerate(thread.posts):
                if found and post.id == found[1]:
                    return self._message(thread, n)
        return None

    def _title(self, thread: Thread, n: int) -> str:
        return f"{'Re: ' if n else ''}{thread.title}"

    def _tree(self, thread: Thread) -> str:
        return f'<ul class="tree">{self._row(thread, 0)}</ul>'

    def _row(self, thread: Thread, n: int, here: int | None = None) -> str:
        post, title = thread.posts[n], self._title(thread, n)
        link = f"<b>{title}</b>" if n == here else f'<a href="/forum/{post.id}.html">{title}</a>'
        below = [m for m in range(n + 1, len(thread.posts)) if m // 2 == n]
        inner = f"<ul>{''.join(self._row(thread, m, here) for m in below)}</ul>" if below else ""
        first = "".join(self._row(thread, 1, here) for _ in range(1) if n == 0 and len(thread.posts) > 1)
        inner = f"<ul>{first}</ul>" if n == 0 and first else inner
        return f"<li>{link} – <b>{post.author}</b>, {post.at:%d.%m.%Y, %H:%M}{inner}</li>"

    def _message(self, thread: Thread, n: int) -> str:
        post, title = thread.posts[n], self._title(thread, n)
        head = f'<h1>{title}</h1><p class="from">written by <b>{post.author}</b> on {post.at:%d.%m.%Y} at {post.at:%H:%M}</p>'
        tree = f'<h3>Whole thread:</h3><ul class="tree">{self._row(thread, 0, n)}</ul>'
        answer = f'<p><a href="/forum/answer?to={post.id}">Reply</a></p>'
        return document(title, f'{head}<div class="text">{post.text}</div>{answer}{tree}<a href="/forum/">Back</a>')


class ImageBoards(PostsOnLists):
    """An index of boards without dates; each shows posts, and a link to what is left out of long threads alone."""

    titled = False

    def page(self, path: str) -> str | None:
        address, number = split(path)
        if address == "/":
            links = "".join(
                f'<li><a href="/{one}/">/{one}/ {name}</a> <p>About it</p></li>' for one, name in (("g", "A"), ("p", "B"))
            )
            return document("Boards", f"<h1>Boards</h1><ul>{links}</ul>")
        if address == "/p/":
            return document("/p/ B", "<h1>/p/ B</h1><hr>")
        if address == "/g/":
            rows = self.rows(self._short, number, '<a rel="next" href="/g/?page={}">Next</a>')
            return document("/g/ A", f"<h1>/g/ A</h1>{rows}") if rows else None
        found = re.fullmatch(r"/g/res/(\w+)\.html", address)
        thread = self.thread_of(found[1]) if found else None
        if thread is None:
            return None
        posts = "".join(self._post(thread, n, listed=False) for n in range(len(thread.posts)))
        return document("/g/ A", f'<a href="/g/">[Return]</a><h1>/g/ A</h1><div class="thread">{posts}</div>')

    def _short(self, thread: Thread) -> str:
        count = len(thread.posts)
        left = [0, *range(max(1, count - 3), count)]
        out = f'<span class="omitted">{count - len(left)} left out. <a href="/g/res/{thread.id}.html">Click here</a></span>'
        first, *others = (self._post(thread, n, listed=True) for n in left)
        return f'<div class="thread">{first}{out if count > len(left) else ""}{"".join(others)}</div><hr>'

    def _post(self, thread: Thread, n: int, *, listed: bool) -> str:
        post, here = thread.posts[n], f"/g/res/{thread.id}.html"
        link = f' <a href="{here}">[Reply]</a>' if listed and n == 0 else ""
        return (
            f'<div class="{"answer" if n else "opening"}" id="no{post.id}"><label><input type="checkbox" name="del">'
            f'<span class="poster">{post.author}</span> <span class="stamp">{post.at:%d %b %Y, %H:%M}</span></label> '
            f'<a class="num" href="{here}#{post.id}">No. {post.id}</a>{link}<blockquote>{post.text}</blockquote></div>'
        )


class NestedComments(PostsOnLists):
    """Articles with nested comments, whose authors nothing marks but the tag."""

    def page(self, path: str) -> str | None:
        address, number = split(path)
        if address == "/":
            rows = self.rows(self._short, number, '<a rel="next" href="/?page={}">Older</a>')
            return document("Notes", f"<h1>Notes</h1>{rows}") if rows else None
        found = re.fullmatch(r"/notes/(\w+)/", address)
        thread = self.thread_of(found[1]) if found else None
        if thread is None:
            return None
        first = thread.posts[0]
        head = f'<h1>{thread.title}</h1><p class="meta">by <b>{first.author}</b> on {first.at:%d %B %Y} at {first.at:%H:%M}</p>'
        comments = self._nested(thread.posts, 1)
        count = f"<h3>{len(thread.posts) - 1} comments</h3>"
        return document(
            thread.title,
            f'<article>{head}<div class="words"><p>{first.text}</p></div></article><section>{count}{comments}</section>',
        )

    def _short(self, thread: Thread) -> str:
        first, at = thread.posts[0], f"/notes/{thread.id}/"
        return (
            f'<div class="entry"><h2><a href="{at}">{thread.title}</a></h2>'
            f'<p class="meta">by {first.author} on {first.at:%d %B %Y}</p>'
            f'<p>{first.text[:40]} …</p><p><a href="{at}#comments">{len(thread.posts) - 1} comments</a></p></div>'
        )

    def _nested(self, posts: tuple[Post, ...], n: int) -> str:
        if n >= len(posts):
            return ""
        one, inner = posts[n], ""
        if n % 3:
            inner = self._nested(posts, n + 1)
        answers = f"<ol>{inner}</ol>" if inner else ""
        item = (
            f'<li id="comment-{one.id}"><div class="com"><cite>{one.author}</cite> <span class="when">{one.at:%d %B %Y at %H:%M}'
            f'</span><div class="body"><p>{one.text}</p></div><a href="?to={one.id}">Reply</a></div>{answers}</li>'
        )
        after = "" if inner else self._nested(posts, n + 1)
        return f"<ol>{item}{after}</ol>" if n == 1 else item + after


class Wall(PostsOnLists):
    """Posts with their newest two comments, without titles; the page of a post has its author's name for a title."""

    titled = False

    def page(self, path: str) -> str | None:
        address, number = split(path)
        if address == "/":
            rows = self.rows(lambda one: self._card(one, 2), number, '<a rel="next" href="/?page={}">Older posts</a>')
            return document("Wall", f"<h1>Our wall</h1>{rows}") if rows else None
        thread = self.thread_of(address.removeprefix("/wall/"))
        return document(f"Post by {thread.posts[0].author}", self._card(thread, len(thread.posts))) if thread else None

    def _card(self, thread: Thread, most: int) -> str:
        first, *others = thread.posts
        more = f'<a class="more" href="/wall/{thread.id}">View all {len(others)} comments</a>' if len(others) > most else ""
        said = "".join(
            f'<div class="comment" data-comment="{one.id}"><a class="person" href="/people/{one.author}">{one.author}</a> '
            f'<span class="said">{one.text}</span> <time datetime="{one.at.isoformat()}">then</time></div>'
            for one in others[-most:]
        )
        return (
            f'<article class="card" data-post="{first.id}"><header>'
            f'<a class="person" href="/people/{first.author}">{first.author}</a> '
            f'<a href="/wall/{thread.id}"><time datetime="{first.at.isoformat()}">then</time></a></header>'
            f'<div class="content"><p>{first.text}</p></div><div class="bar">{len(others)} comments</div>{more}{said}</article>'
        )


class FlatBoard(PostsOnLists):
    """A flat board of the 2ch kind; its list numbers the titles and counts their posts."""

    start = "/garden/"

    def page(self, path: str) -> str | None:
        if path == "/garden/":
            rows = "".join(
                f'<a href="/read.cgi/garden/{one.id}/">{n}: {one.title} ({len(one.posts)})</a> '
                for n, one in enumerate(self.threads, 1)
            )
            return document("Garden", f"<h1>Garden</h1><div><small>{rows}</small></div>")
        thread = self.thread_of(path.removeprefix("/read.cgi/garden/").removesuffix("/"))
        if thread is None:
            return None
        posts = "".join(
            f"<dt>{n} ：<b>{one.author}</b>：{one.at:%Y/%m/%d} {one.at:%H:%M:%S} ID:{one.id}x<dd> {one.text} <br><br>"
            for n, one in enumerate(thread.posts, 1)
        )
        return document(thread.title, f'<a href="/garden/">Back</a><h1>{thread.title}</h1><dl class="thread">{posts}</dl>')


POSTS_ON_LISTS: tuple[type[PostsOnLists], ...] = (TreesOfTitles, ImageBoards, NestedComments, Wall, FlatBoard)
