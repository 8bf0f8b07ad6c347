"""HTML pages of the forum: `/`, `/html/f/{forum_id}?page=N`, `/html/t/{post_id}?page=N`.

They have traps of real forums: the next link of the last page is "#", a page of comments begins with the last one of the page
before, times are shown as "5 minutes ago" (as of the last change, when the page was rendered), counts as "1.2k".
"""

from __future__ import annotations

from html import escape
from typing import Any

from . import layout
from .bodies import PAGE_SIZE, Bodies, page_count, page_number, page_slice
from .json_pages import find_forum, find_thread, forum_rows
from .records import Comment, Forum, Post, Thread
from .world import World

_HOME = ("/", "All forums")


class HtmlPages:
    """Bodies of HTML pages, each rendered once per change of its content."""

    def __init__(self, world: World, bodies: Bodies) -> None:
        self._world = world
        self._bodies = bodies

    def index(self) -> bytes:
        """Return `/`: the forums."""
        return self._bodies.get("forums", self._world.revision, "html", lambda: _index(self._world))

    def forum(self, forum_id: str, page: str) -> bytes:
        """Return `/html/f/{forum_id}?page=N`: the threads of a forum."""
        forum = find_forum(self._world, forum_id)
        pages = page_count(len(forum.activity))
        number = page_number(page, pages, f"forum {forum_id}")
        return self._bodies.get(forum_id, forum.revision, ("html", number), lambda: _forum(forum, number, pages, self._world.now))

    def thread(self, post_id: str, page: str) -> bytes:
        """Return `/html/t/{post_id}?page=N`: a post and its comments, nested within the page."""
        thread = find_thread(self._world, post_id)
        forum = self._world.forums[thread.post.forum_id]
        pages = page_count(thread.reply_count)
        number = page_number(page, pages, f"post {post_id}")
        return self._bodies.get(
            post_id, thread.revision, ("html", number), lambda: _thread(forum, thread, number, pages, self._world.now)
        )


def not_found(message: str) -> bytes:
    """Return the page for an unknown address."""
    main = f"<h1>There is nothing here</h1><p>{escape(message)}</p>"
    return layout.page(title="Nothing here", trail=[_HOME], main=main, json="/forums")


def _index(world: World) -> bytes:
    entries = "\n".join(_forum_entry(row, world.now) for row in forum_rows(world))
    main = f'<h1>Forums</h1>\n<ul class="forums">\n{entries}\n</ul>'
    return layout.page(title="Forums", trail=[_HOME], main=main, json="/forums")


def _forum_entry(row: dict[str, Any], now: float) -> str:
    active = f", active {layout.moment(row['last_reply_at'], 'last-reply', now)}" if row["last_reply_at"] else ""
    return (
        f'<li class="forum" id="{row["id"]}"><a href="/html/f/{row["id"]}">{escape(row["name"])}</a>'
        f'<p>{escape(row["about"])}</p><span class="meta">{row["threads"]} threads{active}</span></li>'
    )


def _forum(forum: Forum, number: int, pages: int, now: float) -> bytes:
    entries = "\n".join(_thread_entry(thread, now) for thread in forum.ordered()[page_slice(number)])
    links = layout.pagination(f"/html/f/{forum.id}", number, pages)
    main = f'<h1>{escape(forum.name)}</h1>\n<ol class="threads">\n{entries}\n</ol>\n{links}'
    return layout.page(title=forum.name, trail=[_HOME], main=main, json=f"/list/{forum.id}/{number}")


def _thread_entry(thread: Thread, now: float) -> str:
    post = thread.post
    kind, badge = ("thread sticky", '<span class="badge">pinned</span> ') if post.sticky else ("thread", "")
    return (
        f'<li class="{kind}" id="{post.id}">{badge}<a class="title" href="/html/t/{post.id}">{escape(post.title)}</a>'
        f'<div class="meta">{_byline(post, now)} · {_replies_count(thread)} · '
        f"active {layout.moment(thread.last_reply_at, 'last-reply', now)}</div></li>"
    )


def _thread(forum: Forum, thread: Thread, number: int, pages: int, now: float) -> bytes:
    post = thread.post
    main = "\n".join(
        [
            _post(thread, now, with_body=number == 1),
            _replies(thread, number, now),
            layout.pagination(f"/html/t/{post.id}", number, pages),
        ]
    )
    trail = [_HOME, (f"/html/f/{forum.id}", forum.name)]
    return layout.page(title=post.title, trail=trail, main=main, json=f"/comment/{post.id}/{number}")


def _post(thread: Thread, now: float, *, with_body: bool) -> str:
    """Render the head of a thread; its body is on the first page only, as in most forums."""
    post = thread.post
    body = f'<div class="body">{layout.paragraphs(post.body)}</div>'
    views = f'<span class="views">{layout.count(thread.views)}</span> views'
    elsewhere = f'<p class="meta"><a href="/html/t/{post.id}">Read the first post</a></p>'
    return (
        f'<article class="post" id="{post.id}"><h1>{escape(post.title)}</h1>'
        f'<div class="meta">{_byline(post, now)} · {views} · {_replies_count(thread)}</div>'
        f"{body if with_body else elsewhere}</article>"
    )


def _replies(thread: Thread, number: int, now: float) -> str:
    """Render the comments of one page; from the second page on they begin with the last one of the page before. A comment whose
    parent is on an earlier page is at the outermost level.
    """
    page = page_slice(number)
    shown = thread.comments[max(0, page.start - 1) : page.stop]
    position = {comment.id: index for index, comment in enumerate(thread.comments)}
    here = {comment.id for comment in shown}
    answers: dict[str | None, list[Comment]] = {}
    for comment in shown:
        answers.setdefault(comment.parent_id if comment.parent_id in here else None, []).append(comment)

    def level(parent_id: str | None) -> str:
        entries = "".join(
            f"<li>{_comment(comment, position, now)}{level(comment.id)}</li>\n" for comment in answers.get(parent_id, [])
        )
        return f'<ol class="replies">\n{entries}</ol>' if entries else ""

    return level(None)


def _comment(comment: Comment, position: dict[str, int], now: float) -> str:
    if comment.deleted:
        return f'<article class="comment deleted" id="{comment.id}"><div class="body"><p>{comment.body}</p></div></article>'
    answers = ""
    if comment.parent_id:
        # A parent that was deleted without a placeholder is still linked.
        page = position.get(comment.parent_id, 0) // PAGE_SIZE + 1
        address = f"/html/t/{comment.post_id}?page={page}#{comment.parent_id}"
        answers = f' · <a class="parent" href="{address}" data-parent="{comment.parent_id}">in reply to</a>'
    return (
        f'<article class="comment" id="{comment.id}"><div class="meta">{_byline(comment, now)}{answers}</div>'
        f'<div class="body">{layout.paragraphs(comment.body)}</div></article>'
    )


def _byline(written: Post | Comment, now: float) -> str:
    edited = f", edited {layout.moment(written.edited_at, 'edited', now)}" if written.edited_at else ""
    return f'<span class="author">{escape(written.author)}</span>, {layout.moment(written.created_at, "created", now)}{edited}'


def _replies_count(thread: Thread) -> str:
    replies = "reply" if thread.reply_count == 1 else "replies"
    return f'<span class="reply-count">{layout.count(thread.reply_count)}</span> {replies}'
