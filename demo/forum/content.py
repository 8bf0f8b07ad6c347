"""Posts, comments, threads and forums, and their changes since the opening, the reference for a crawler's result."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import sha1
from random import Random
from typing import TYPE_CHECKING, Literal
from zlib import crc32

from .words import Prose, Theme

if TYPE_CHECKING:
    from .world import Mix, World


@dataclass(frozen=True, kw_only=True, slots=True)
class Post:
    """The opening of a thread; `created_at` and `edited_at` are ISO 8601 in UTC, seconds, with a Z."""

    id: str
    forum_id: str
    title: str
    body: str
    author: str
    created_at: str
    sticky: bool
    edited_at: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Comment:
    """A reply; `parent_id` is None for a reply to the post itself; `depth` is 0 for those.

    `deleted`: only a placeholder is left, with the id, the parent and the date. A parent may have vanished.
    """

    id: str
    post_id: str
    parent_id: str | None
    author: str
    body: str
    created_at: str
    depth: int
    edited_at: str | None = None
    deleted: bool = False


@dataclass(kw_only=True, slots=True)
class Thread:
    """A post and its comments, oldest first."""

    post: Post
    comments: list[Comment] = field(default_factory=list)
    revision: int = 0

    @property
    def reply_count(self) -> int:
        """Number of shown comments, including placeholders."""
        return len(self.comments)

    @property
    def last_reply_at(self) -> str:
        """Time of the newest comment, or of the post without comments."""
        return self.comments[-1].created_at if self.comments else self.post.created_at

    @property
    def views(self) -> int:
        """A plausible number that grows with the replies. Reading does not change it: content depends on events only."""
        return crc32(self.post.id.encode()) % 97 + 13 * len(self.comments)


@dataclass(kw_only=True, slots=True)
class Forum:
    """Threads by post id, in the order of their last activity, the newest last."""

    id: str
    theme: Theme
    name: str
    activity: dict[str, Thread] = field(default_factory=dict)
    revision: int = 0

    def sink(self) -> None:
        """Sort the threads by last activity, after a deletion or a move."""
        self.activity = dict(sorted(self.activity.items(), key=lambda entry: entry[1].last_reply_at))

    def ordered(self) -> list[Thread]:
        """Return the threads in the order of a list page: sticky ones first, then the newest reply first."""
        newest_first = list(reversed(self.activity.values()))
        return [t for t in newest_first if t.post.sticky] + [t for t in newest_first if not t.post.sticky]


def iso(at: float) -> str:
    """Format a time in seconds since 1970 as the forum does, to the second."""
    return datetime.fromtimestamp(int(at), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def post_hash(post: Post) -> str:
    """Return the SHA-1 in hex over id, forum, title, body, author and creation time, joined by U+001F."""
    return _hash(post.id, post.forum_id, post.title, post.body, post.author, post.created_at)


def comment_hash(comment: Comment) -> str:
    """Return the SHA-1 in hex over id, post, parent (or nothing), author, body and creation time, joined by U+001F."""
    return _hash(comment.id, comment.post_id, comment.parent_id or "", comment.author, comment.body, comment.created_at)


def _hash(*fields: str) -> str:
    return sha1("\x1f".join(fields).encode(), usedforsecurity=False).hexdigest()


Kind = Literal["posts", "comments"]
How = Literal["vanished", "placeholder", "thread"]


class History:
    """Changes by kind and id; times are in seconds since 1970, by the clock of the forum's dates.

    `published`: time of a new piece; pieces from the opening are not included. `edited`: all versions of an edited or moved
    piece, the original first, each `(time or None for the original, hash)`. `deleted`: `(time, how, hash until then)`, with how
    "vanished", "placeholder" ("[deleted]" is shown in its place), or "thread" (with its whole thread, or as its post).
    """

    def __init__(self) -> None:
        self.published: dict[Kind, dict[str, float]] = {"posts": {}, "comments": {}}
        self.edited: dict[Kind, dict[str, list[tuple[float | None, str]]]] = {"posts": {}, "comments": {}}
        self.deleted: dict[Kind, dict[str, tuple[float, How, str]]] = {"posts": {}, "comments": {}}

    def publish(self, kind: Kind, piece: str, at: float) -> None:
        self.published[kind][piece] = at

    def edit(self, kind: Kind, piece: str, at: float, *, before: str, after: str) -> None:
        """Add a version; `before` and `after` are hashes."""
        versions = self.edited[kind].setdefault(piece, [(None, before)])
        versions.append((at, after))

    def delete(self, kind: Kind, piece: str, at: float, how: How, before: str) -> None:
        self.deleted[kind][piece] = (at, how, before)


_OF_POSTS = 0.25  # share of the edits that concern a thread's opening post, half of them its title
_OF_THREADS = 0.1  # share of the deletions that take a whole thread
_PLACEHOLDERS = 0.5  # share of the deleted comments that leave "[deleted]" behind
_YOUNG = 5.0  # mean distance of a changed comment from the newest one of its thread
_FEWEST = 5  # a forum with at most so many threads loses none


class Changes:
    """Changes `world`. Its random sequence is separate, so that a forum without changes stays the same."""

    def __init__(self, world: World, seed: int) -> None:
        self._world = world
        self._rng = Random(f"forum changes {seed}")
        self._prose = Prose(self._rng)

    def happen(self, forum: Forum, mix: Mix, at: float) -> bool:
        """Draw whether a change replaces a publication; return False if not, or if there is nothing to change."""
        if not (mix.edit or mix.delete or mix.move) or not forum.activity:
            return False
        draw = self._rng.random()
        if draw < mix.edit:
            return self._edit(forum, at)
        if draw < mix.edit + mix.delete:
            return self._delete(forum, at)
        return draw < mix.edit + mix.delete + mix.move and self._move(forum, at)

    def _edit(self, forum: Forum, at: float) -> bool:
        thread = self._world.recently_active(forum, self._rng)
        comment = None if self._rng.random() < _OF_POSTS else self._young(thread)
        if comment:
            self._edit_comment(forum.theme, thread, comment, at)
        else:
            self._edit_post(forum, thread, at)
        return True

    def _edit_comment(self, theme: Theme, thread: Thread, comment: Comment, at: float) -> None:
        world = self._world
        edited = replace(comment, body=self._amended(comment.body, theme), edited_at=iso(at))
        thread.comments[thread.comments.index(comment)] = edited
        thread.revision += 1
        world.history.edit("comments", comment.id, at, before=world.comment_hashes[comment.id], after=comment_hash(edited))
        world.comment_hashes[comment.id] = comment_hash(edited)

    def _edit_post(self, forum: Forum, thread: Thread, at: float) -> None:
        post = thread.post
        if self._rng.random() < 0.5:
            thread.post = replace(post, title=self._retitled(post.title, forum.theme), edited_at=iso(at))
        else:
            thread.post = replace(post, body=self._amended(post.body, forum.theme), edited_at=iso(at))
        self._post_changed(thread, at)
        forum.revision += 1

    def _amended(self, body: str, theme: Theme) -> str:
        """Return another body: the first edit adds a paragraph, later ones replace it."""
        original, _, before = body.partition("\n\nEdit ")
        number = int(before.partition(":")[0]) + 1 if before else 1
        return f"{original}\n\nEdit {number}: {self._prose.comment_body(theme)}"

    def _retitled(self, title: str, theme: Theme) -> str:
        while (other := self._prose.title(theme)) == title:
            pass
        return other

    def _post_changed(self, thread: Thread, at: float) -> None:
        """Update history and hashes of a changed post."""
        world, post = self._world, thread.post
        world.history.edit("posts", post.id, at, before=world.post_hashes[post.id], after=post_hash(post))
        world.post_hashes[post.id] = post_hash(post)
        thread.revision += 1

    def _delete(self, forum: Forum, at: float) -> bool:
        thread = self._world.recently_active(forum, self._rng)
        if self._rng.random() < _OF_THREADS and len(forum.activity) > _FEWEST and not thread.post.sticky:
            self._delete_thread(forum, thread, at)
            return True
        if comment := self._young(thread):
            self._delete_comment(forum, thread, comment, at)
        return comment is not None

    def _delete_thread(self, forum: Forum, thread: Thread, at: float) -> None:
        world, post = self._world, thread.post.id
        del forum.activity[post], world.threads[post], world.latest[post]
        forum.revision += 1
        world.gone[post] = self._rng.choice((404, 410))
        world.history.delete("posts", post, at, "thread", world.post_hashes.pop(post))
        for comment in thread.comments:
            del world.latest[comment.id]
            if not comment.deleted:
                world.history.delete("comments", comment.id, at, "thread", world.comment_hashes.pop(comment.id))

    def _delete_comment(self, forum: Forum, thread: Thread, comment: Comment, at: float) -> None:
        position = thread.comments.index(comment)
        keeps_place = self._rng.random() < _PLACEHOLDERS
        if keeps_place:
            thread.comments[position] = replace(comment, author="", body="[deleted]", deleted=True)
        else:
            del thread.comments[position], self._world.latest[comment.id]
            forum.sink()
            forum.revision += 1
        thread.revision += 1
        how: How = "placeholder" if keeps_place else "vanished"
        self._world.history.delete("comments", comment.id, at, how, self._world.comment_hashes.pop(comment.id))

    def _move(self, forum: Forum, at: float) -> bool:
        elsewhere = [other for other in self._world.forums.values() if other is not forum]
        if not elsewhere or len(forum.activity) <= _FEWEST:
            return False
        thread, other = self._world.recently_active(forum, self._rng), self._rng.choice(elsewhere)
        other.activity[thread.post.id] = forum.activity.pop(thread.post.id)
        other.sink()
        thread.post = replace(thread.post, forum_id=other.id)
        self._post_changed(thread, at)
        forum.revision += 1
        other.revision += 1
        return True

    def _young(self, thread: Thread) -> Comment | None:
        """Return a comment that is not deleted, most likely one of the newest."""
        there = [comment for comment in thread.comments if not comment.deleted]
        return there[-1 - int(self._rng.expovariate(1 / _YOUNG)) % len(there)] if there else None
