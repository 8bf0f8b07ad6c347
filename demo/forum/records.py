"""What a forum is made of, and the hash of each piece that `/truth` publishes.

    Forum 1 ── n Thread 1 ── 1 Post
                      1 ── n Comment ──parent_id──▶ an older Comment of the same thread, or None

The records of a post and a comment are frozen: an edit puts another one in their place. A thread's revision counts its changes.
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

    `deleted`: only a placeholder is left, with the id, the parent and the date. A parent may have vanished altogether.
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
        """How many comments are shown, placeholders among them."""
        return len(self.comments)

    @property
    def last_reply_at(self) -> str:
        """When the newest comment was written; the post's own time while nobody has answered."""
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
        """Put every thread where its last activity belongs; after a deletion or a move that is no longer where it stood."""
        self.activity = dict(sorted(self.activity.items(), key=lambda entry: entry[1].last_reply_at))

    def ordered(self) -> list[Thread]:
        """The threads as a list page shows them: sticky ones first, then the newest reply first."""
        newest_first = list(reversed(self.activity.values()))
        return [t for t in newest_first if t.post.sticky] + [t for t in newest_first if not t.post.sticky]


def iso(at: float) -> str:
    """A time in seconds since 1970 as the forum writes it, to the second."""
    return datetime.fromtimestamp(int(at), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def post_hash(post: Post) -> str:
    """SHA-1 in hex over id, forum, title, body, author and creation time, joined by U+001F."""
    return _hash(post.id, post.forum_id, post.title, post.body, post.author, post.created_at)


def comment_hash(comment: Comment) -> str:
    """SHA-1 in hex over id, post, parent (or nothing), author, body and creation time, joined by U+001F."""
    return _hash(comment.id, comment.post_id, comment.parent_id or "", comment.author, comment.body, comment.created_at)


def _hash(*fields: str) -> str:
    return sha1("\x1f".join(fields).encode(), usedforsecurity=False).hexdigest()
