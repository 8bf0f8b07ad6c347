"""The HTML pages of the forum, of the templates beside this file."""

from __future__ import annotations

from datetime import datetime
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from .content import Comment, Thread
from .json_pages import find_forum, find_thread, forum_rows
from .words import PAGE_SIZE, Bodies, page_count, page_number, page_slice
from .world import World

_DAY_S = 86_400


class HtmlPages:
    """Bodies of HTML pages, each rendered once per change of its content."""

    def __init__(self, world: World, bodies: Bodies) -> None:
        self._world = world
        self._bodies = bodies

    def index(self) -> bytes:
        """Return `/`: the forums."""
        world = self._world
        return self._bodies.get(
            "forums", world.revision, "html", lambda: self._made("index.html", "Forums", rows=forum_rows(world))
        )

    def forum(self, forum_id: str, page: str) -> bytes:
        """Return `/html/f/{forum_id}?page=N`: the threads of a forum."""
        forum = find_forum(self._world, forum_id)
        pages = page_count(len(forum.activity))
        number = page_number(page, pages, f"forum {forum_id}")

        def render() -> bytes:
            values = {"forum": forum, "threads": forum.ordered()[page_slice(number)], "number": number, "pages": pages}
            return self._made("forum.html", forum.name, f"/list/{forum.id}/{number}", **values)

        return self._bodies.get(forum_id, forum.revision, ("html", number), render)

    def thread(self, post_id: str, page: str) -> bytes:
        """Return `/html/t/{post_id}?page=N`: a post and its comments, nested within the page."""
        thread = find_thread(self._world, post_id)
        pages = page_count(thread.reply_count)
        number = page_number(page, pages, f"post {post_id}")

        def render() -> bytes:
            values = {"forum": self._world.forums[thread.post.forum_id], "thread": thread, "number": number, "pages": pages}
            position = {comment.id: index for index, comment in enumerate(thread.comments)}
            return self._made(
                "thread.html",
                thread.post.title,
                f"/comment/{post_id}/{number}",
                **values,
                answers=_answers(thread, number),
                page_of=lambda parent: position.get(parent, 0) // PAGE_SIZE + 1,  # one that was deleted whole is still linked
            )

        return self._bodies.get(post_id, thread.revision, ("html", number), render)

    def _made(self, template: str, title: str, json: str = "/forums", **values: object) -> bytes:
        return _rendered(template, title=title, json=json, now=self._world.now, **values)


def not_found(message: str) -> bytes:
    """Return the page for an unknown address."""
    return _rendered("page.html", title="Nothing here", json="/forums", message=message)


def _rendered(template: str, **values: object) -> bytes:
    return _environment().get_template(template).render({"forum": None, "thread": None, **values}).encode()


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).with_name("templates")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"ago": ago, "count": count}
    return environment


def _answers(thread: Thread, number: int) -> dict[str | None, list[Comment]]:
    """Return the comments of one page by the comment that they answer; from the second page on they begin with the last one of
    the page before. A comment whose parent is on an earlier page is at the outermost level.
    """
    page = page_slice(number)
    shown = thread.comments[max(0, page.start - 1) : page.stop]
    here = {comment.id for comment in shown}
    answers: dict[str | None, list[Comment]] = {}
    for comment in shown:
        answers.setdefault(comment.parent_id if comment.parent_id in here else None, []).append(comment)
    return answers


def ago(iso: str, now: float) -> str:
    """Format a time for people: `5 minutes ago`, from a day on as a date."""
    age_s = max(0, int(now - datetime.fromisoformat(iso).timestamp()))
    if age_s >= _DAY_S:
        return f"{iso[:10]} {iso[11:16]}"
    for unit, seconds in (("hour", 3600), ("minute", 60), ("second", 1)):
        if number := age_s // seconds:
            return f"{number} {unit}{'s' if number > 1 else ''} ago"
    return "just now"


def count(number: int) -> str:
    """Format a number as forums do: 999, then 1.2k."""
    return str(number) if number < 1_000 else f"{number / 1_000:.1f}k"
