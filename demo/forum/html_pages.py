"""Frame of every HTML page: head, stylesheet, trail, pagination."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from html import escape
from typing import Any

from .content import Comment, Forum, Post, Thread
from .json_pages import find_forum, find_thread, forum_rows
from .words import PAGE_SIZE, Bodies, page_count, page_number, page_slice
from .world import World

STYLE = """
:root { color-scheme: light dark; --line: #8883; --soft: #888; --accent: light-dark(#9a3412, #fdba74); }
body { font: 17px/1.55 Georgia, "Times New Roman", serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem; }
header, nav, footer, .meta { font: 14px/1.5 system-ui, sans-serif; color: var(--soft); }
h1 { font-size: 1.6rem; line-height: 1.25; margin: .6rem 0 .2rem; }
a { color: var(--accent); text-decoration: none; } a:hover { text-decoration: underline; }
ol, ul { list-style: none; padding: 0; }
.threads > li, .forums > li { padding: .7rem 0; border-bottom: 1px solid var(--line); }
.forums p { margin: .1rem 0; }
.replies .replies { padding-left: 1.2rem; border-left: 2px solid var(--line); }
.comment { margin: 1.1rem 0; } .comment p { margin: .3rem 0; }
.comment:target { outline: 2px solid var(--accent); outline-offset: 6px; }
.badge { font: 12px system-ui, sans-serif; border: 1px solid currentColor; border-radius: 1em; padding: 0 .6em; }
.pages { display: flex; justify-content: space-between; margin: 1.5rem 0; }
footer { margin-top: 3rem; border-top: 1px solid var(--line); padding-top: .6rem; }
"""

_DAY_S = 86_400
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<header>{trail}</header>
<main>
{main}
</main>
<footer>A forum that Trawl grows for its own demo. The same as JSON: <a href="{json}">{json}</a></footer>
</body>
</html>
"""


def page(*, title: str, trail: Iterable[tuple[str, str]], main: str, json: str) -> bytes:
    """Render a whole page; `title` and the (address, name) pairs of `trail` are plain text, `main` is markup, `json` a safe
    address.
    """
    links = " › ".join(f'<a href="{address}">{escape(name)}</a>' for address, name in trail)
    return _PAGE.format(title=escape(title), style=STYLE, trail=links, main=main, json=json).encode()


def pagination(address: str, number: int, pages: int) -> str:
    """Render links to the pages before and after, with their link relations; "" for a single page.

    As in many real forums, the last page has a next link too, which points at "#".
    """
    if pages == 1:
        return ""
    newer = f'<a rel="prev" href="{address}?page={number - 1}">← Previous</a>' if number > 1 else "<span></span>"
    following = f"{address}?page={number + 1}" if number < pages else "#"
    older = f'<a rel="next" href="{following}">Next →</a>'
    return f'<nav class="pages">{newer}<span>Page {number} of {pages}</span>{older}</nav>'


def moment(iso: str, kind: str, now: float) -> str:
    """Render a time: for people as "5 minutes ago", from a day on as a date, for programs to the second."""
    age_s = max(0, int(now - datetime.fromisoformat(iso).timestamp()))
    text = _ago(age_s) if age_s < _DAY_S else f"{iso[:10]} {iso[11:16]}"
    return f'<time class="{kind}" datetime="{iso}">{text}</time>'


def _ago(age_s: int) -> str:
    for unit, seconds in (("hour", 3600), ("minute", 60), ("second", 1)):
        if number := age_s // seconds:
            return f"{number} {unit}{'s' if number > 1 else ''} ago"
    return "just now"


def count(number: int) -> str:
    """Format a number as forums do: 999, then 1.2k."""
    return str(number) if number < 1_000 else f"{number / 1_000:.1f}k"


def paragraphs(text: str) -> str:
    """Render plain text as paragraphs, which an empty line separates in `text`."""
    return "".join(f"<p>{escape(paragraph)}</p>" for paragraph in text.split("\n\n"))


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
    return page(title="Nothing here", trail=[_HOME], main=main, json="/forums")


def _index(world: World) -> bytes:
    entries = "\n".join(_forum_entry(row, world.now) for row in forum_rows(world))
    main = f'<h1>Forums</h1>\n<ul class="forums">\n{entries}\n</ul>'
    return page(title="Forums", trail=[_HOME], main=main, json="/forums")


def _forum_entry(row: dict[str, Any], now: float) -> str:
    active = f", active {moment(row['last_reply_at'], 'last-reply', now)}" if row["last_reply_at"] else ""
    return (
        f'<li class="forum" id="{row["id"]}"><a href="/html/f/{row["id"]}">{escape(row["name"])}</a>'
        f'<p>{escape(row["about"])}</p><span class="meta">{row["threads"]} threads{active}</span></li>'
    )


def _forum(forum: Forum, number: int, pages: int, now: float) -> bytes:
    entries = "\n".join(_thread_entry(thread, now) for thread in forum.ordered()[page_slice(number)])
    links = pagination(f"/html/f/{forum.id}", number, pages)
    main = f'<h1>{escape(forum.name)}</h1>\n<ol class="threads">\n{entries}\n</ol>\n{links}'
    return page(title=forum.name, trail=[_HOME], main=main, json=f"/list/{forum.id}/{number}")


def _thread_entry(thread: Thread, now: float) -> str:
    post = thread.post
    kind, badge = ("thread sticky", '<span class="badge">pinned</span> ') if post.sticky else ("thread", "")
    return (
        f'<li class="{kind}" id="{post.id}">{badge}<a class="title" href="/html/t/{post.id}">{escape(post.title)}</a>'
        f'<div class="meta">{_byline(post, now)} · {_replies_count(thread)} · '
        f"active {moment(thread.last_reply_at, 'last-reply', now)}</div></li>"
    )


def _thread(forum: Forum, thread: Thread, number: int, pages: int, now: float) -> bytes:
    post = thread.post
    main = "\n".join(
        [
            _post(thread, now, with_body=number == 1),
            _replies(thread, number, now),
            pagination(f"/html/t/{post.id}", number, pages),
        ]
    )
    trail = [_HOME, (f"/html/f/{forum.id}", forum.name)]
    return page(title=post.title, trail=trail, main=main, json=f"/comment/{post.id}/{number}")


def _post(thread: Thread, now: float, *, with_body: bool) -> str:
    """Render the head of a thread; its body is on the first page only, as in most forums."""
    post = thread.post
    body = f'<div class="body">{paragraphs(post.body)}</div>'
    views = f'<span class="views">{count(thread.views)}</span> views'
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
        f'<div class="body">{paragraphs(comment.body)}</div></article>'
    )


def _byline(written: Post | Comment, now: float) -> str:
    edited = f", edited {moment(written.edited_at, 'edited', now)}" if written.edited_at else ""
    return f'<span class="author">{escape(written.author)}</span>, {moment(written.created_at, "created", now)}{edited}'


def _replies_count(thread: Thread) -> str:
    replies = "reply" if thread.reply_count == 1 else "replies"
    return f'<span class="reply-count">{count(thread.reply_count)}</span> {replies}'
