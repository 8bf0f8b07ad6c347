"""Records of a forum, and the hash of each piece that `/truth` publishes.

    Forum 1 ── n Thread 1 ── 1 Post
                      1 ── n Comment ──parent_id──▶ an older Comment of the same thread, or None

Posts and comments are frozen: an edit replaces the record. A thread's revision counts its changes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha1
from zlib import crc32

from .words import Theme


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
