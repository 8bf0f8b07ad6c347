"""JSON pages of the forum: the three interfaces for crawlers, the list of forums, and the truth."""

from __future__ import annotations

from itertools import islice
from typing import Any

import msgspec

from .content import Comment, Forum, Thread
from .words import Bodies, NoSuchPage, page_count, page_number, page_slice
from .world import World

encode = msgspec.json.encode
RECENT = 50  # messages on a page of the newest


class JsonPages:
    """Bodies of JSON pages, each rendered once per change of its content."""

    def __init__(self, world: World, bodies: Bodies) -> None:
        self._world = world
        self._bodies = bodies

    def threads(self, forum_id: str, page: str) -> bytes:
        """Return `/list/{forum_id}/{page}`: 20 threads, sticky ones first, then the newest reply first."""
        forum = find_forum(self._world, forum_id)
        pages = page_count(len(forum.activity))
        number = page_number(page, pages, f"forum {forum_id}")
        return self._bodies.get(forum_id, forum.revision, ("json", number), lambda: _thread_page(forum, number, pages))

    def post(self, post_id: str) -> bytes:
        """Return `/post/{post_id}`: the opening post with its body."""
        thread = find_thread(self._world, post_id)
        return self._bodies.get(post_id, thread.revision, "json", lambda: encode(_post(thread)))

    def comments(self, post_id: str, page: str) -> bytes:
        """Return `/comment/{post_id}/{page}`: 20 comments, oldest first."""
        thread = find_thread(self._world, post_id)
        pages = page_count(thread.reply_count)
        number = page_number(page, pages, f"post {post_id}")
        return self._bodies.get(post_id, thread.revision, ("json", number), lambda: _comment_page(thread, number, pages))

    def recent(self, page: str) -> bytes:
        """Return `/recent/{page}`: 50 messages of all forums, the newest first; opening posts have their thread's id."""
        pages = page_count(len(self._world.latest), RECENT)
        number = page_number(page, pages, "the newest messages")
        return self._bodies.get(
            "recent", self._world.revision, ("json", number), lambda: _recent_page(self._world, number, pages)
        )

    def forums(self) -> bytes:
        """Return `/forums`: every forum with its name, its number of threads and its last activity."""
        return self._bodies.get("forums", self._world.revision, "json", lambda: encode({"forums": forum_rows(self._world)}))

    def sizes(self) -> dict[str, int]:
        """Return the number of pages by kind."""
        threads = self._world.threads.values()
        return {
            "list": sum(page_count(len(forum.activity)) for forum in self._world.forums.values()),
            "post": len(threads),
            "comment": sum(page_count(thread.reply_count) for thread in threads),
        }

    def truth(self) -> bytes:
        """Return `/truth`: the hash of every existing post and comment, the number of events since the start, the forum's
        pace, and the `published`, `edited` and `deleted` pieces since then (described in `content.py`).
        """
        world, history = self._world, self._world.history
        truth = {
            "posts": world.post_hashes,
            "comments": world.comment_hashes,
            "revision": world.revision,
            "pace": world.pace,
            "published": history.published,
            "edited": history.edited,
            "deleted": history.deleted,
        }
        return self._bodies.get("truth", world.revision, "json", lambda: encode(truth))


def find_forum(world: World, forum_id: str) -> Forum:
    """Return the forum. Raises NoSuchPage."""
    try:
        return world.forums[forum_id]
    except KeyError:
        raise NoSuchPage(f"no forum {forum_id[:40]!r}; there are f1 to f{len(world.forums)}, see /forums") from None


def find_thread(world: World, post_id: str) -> Thread:
    """Return the thread of a post. Raises NoSuchPage."""
    if status := world.gone.get(post_id):
        raise NoSuchPage(f"post {post_id} was deleted", status)
    try:
        return world.threads[post_id]
    except KeyError:
        raise NoSuchPage(f"no post {post_id[:40]!r}; see /list/{{forum_id}}/{{page}} for those there are") from None


def forum_rows(world: World) -> list[dict[str, Any]]:
    """Return one row per forum; `last_reply_at` is None in a forum without threads."""
    return [
        {
            "id": forum.id,
            "name": forum.name,
            "about": forum.theme.about,
            "threads": len(forum.activity),
            "pages": page_count(len(forum.activity)),
            "last_reply_at": next((t.last_reply_at for t in reversed(forum.activity.values())), None),
        }
        for forum in world.forums.values()
    ]


def _thread_page(forum: Forum, number: int, pages: int) -> bytes:
    rows = [_thread_row(thread) for thread in forum.ordered()[page_slice(number)]]
    return encode({"forum_id": forum.id, "page": number, "pages": pages, "threads": rows})


def _thread_row(thread: Thread) -> dict[str, Any]:
    post = thread.post
    return {
        "id": post.id,
        "title": post.title,
        "author": post.author,
        "created_at": post.created_at,
        "reply_count": thread.reply_count,
        "last_reply_at": thread.last_reply_at,
        "sticky": post.sticky,
    }


def _post(thread: Thread) -> dict[str, Any]:
    post = thread.post
    return {
        "id": post.id,
        "forum_id": post.forum_id,
        "title": post.title,
        "body": post.body,
        "author": post.author,
        "created_at": post.created_at,
        "edited_at": post.edited_at,
        "sticky": post.sticky,
        "views": thread.views,
        "reply_count": thread.reply_count,
        "last_reply_at": thread.last_reply_at,
    }


def _comment_page(thread: Thread, number: int, pages: int) -> bytes:
    rows = [_comment_row(comment) for comment in thread.comments[page_slice(number)]]
    return encode({"post_id": thread.post.id, "page": number, "pages": pages, "comments": rows})


def _recent_page(world: World, number: int, pages: int) -> bytes:
    end = (number - 1) * RECENT
    shown = islice(reversed(world.latest.items()), end, end + RECENT)
    return encode({"page": number, "pages": pages, "messages": [_message(world, one, thread) for one, thread in shown]})


def _message(world: World, message: str, thread_id: str) -> dict[str, Any]:
    thread = world.threads[thread_id]
    if message == thread_id:
        opening = _post(thread)
        return {name: opening[name] for name in ("id", "forum_id", "title", "body", "author", "created_at", "edited_at")} | {
            "post_id": thread_id,
            "opening": True,
        }
    comment = next(one for one in reversed(thread.comments) if one.id == message)
    return _comment_row(comment) | {"forum_id": thread.post.forum_id, "opening": False}


def _comment_row(comment: Comment) -> dict[str, Any]:
    return {
        "id": comment.id,
        "post_id": comment.post_id,
        "parent_id": comment.parent_id,
        "author": comment.author or None,
        "body": comment.body,
        "created_at": comment.created_at,
        "edited_at": comment.edited_at,
        "deleted": comment.deleted,
    }
