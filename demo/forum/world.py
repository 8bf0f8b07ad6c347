"""The forum's content: grown from a seed, changed by one event at a time.

No wall clock and no other randomness: the same seed and sizes and the same number of events give the same content, to the
byte. The threads that are there from the start are dated in the `HISTORY_S` before `OPENING`; each event then
moves the simulated clock forward by at least a second, so that no two of them have the same time.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from random import Random

from demo.forum.prose import Prose
from demo.forum.records import Comment, Forum, Post, Thread, comment_hash, post_hash
from demo.forum.words import THEMES

OPENING = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp())
HISTORY_S = 60 * 86_400
MAX_DEPTH = 7
_NEW_THREAD_SHARE = 0.1
_TAIL = 1.6  # exponent of the power law of comment counts: most threads have few, some have hundreds
_LONGEST = 60  # no thread starts with more than this many times the mean


@dataclass(frozen=True, kw_only=True)
class Size:
    """How much there is at the start: forums, threads in each, and the mean number of comments of a thread."""

    forums: int = 5
    threads: int = 60
    comments: float = 8.0


class World:
    """All forums, and the truth about them.

    `revision` counts the events since the start. `post_hashes` and `comment_hashes` map each id to the hash of its content.
    """

    def __init__(self, seed: int, size: Size) -> None:
        self.revision = 0
        self.forums: dict[str, Forum] = {}
        self.threads: dict[str, Thread] = {}
        self.post_hashes: dict[str, str] = {}
        self.comment_hashes: dict[str, str] = {}
        self._now = OPENING
        self._rng = Random(f"forum content {seed}")
        self._prose = Prose(self._rng)
        for number in range(1, size.forums + 1):
            self._found_forum(number, size)

    def advance(self) -> None:
        """One event: a new thread (one in ten), or a reply, most likely to a thread that was active lately."""
        self._now += self._rng.randint(1, 120)
        self.revision += 1
        forum = self._rng.choice(list(self.forums.values()))
        if not forum.activity or self._rng.random() < _NEW_THREAD_SHARE:
            self._open_thread(forum, self._now, sticky=False)
        else:
            self._reply(forum, self._recently_active(forum), self._now)

    def _found_forum(self, number: int, size: Size) -> None:
        theme = THEMES[(number - 1) % len(THEMES)]
        volume = (number - 1) // len(THEMES) + 1
        name = theme.name if volume == 1 else f"{theme.name} {volume}"
        forum = self.forums[f"f{number}"] = Forum(id=f"f{number}", theme=theme, name=name)
        sticky = min(3, -(-size.threads // 40))
        for index in range(size.threads):
            created = OPENING - self._rng.randint(60, HISTORY_S)
            thread = self._open_thread(forum, created, sticky=index < sticky)
            # Early replies are dense and late ones sparse; each is dated before the opening.
            delays = sorted(self._rng.random() ** 3 for _ in range(self._power_law(size.comments)))
            for delay in delays:
                self._reply(forum, thread, created + 1 + int(delay * (OPENING - created - 2)))
        by_activity = sorted(forum.activity.values(), key=lambda t: (t.last_reply_at, int(t.post.id[1:])))
        forum.activity = {thread.post.id: thread for thread in by_activity}

    def _power_law(self, mean: float) -> int:
        """A comment count from a Lomax distribution (a shifted Pareto), whose mean is scale / (tail - 1)."""
        drawn = mean * (_TAIL - 1) * (self._rng.paretovariate(_TAIL) - 1)
        return round(min(drawn, _LONGEST * mean))

    def _recently_active(self, forum: Forum) -> Thread:
        """Four times in five one of the last dozen or so, else any, so that old threads come back to the top too."""
        rank = int(self._rng.expovariate(1 / 6)) if self._rng.random() < 0.8 else self._rng.randrange(len(forum.activity))
        return next(islice(reversed(forum.activity.values()), rank % len(forum.activity), None))

    def _open_thread(self, forum: Forum, at: int, *, sticky: bool) -> Thread:
        post = Post(
            id=f"p{len(self.threads) + 1}",
            forum_id=forum.id,
            title=self._prose.title(forum.theme),
            body=self._prose.post_body(forum.theme),
            author=self._prose.author(),
            created_at=_iso(at),
            sticky=sticky,
        )
        thread = self.threads[post.id] = forum.activity[post.id] = Thread(post=post)
        forum.revision += 1
        self.post_hashes[post.id] = post_hash(post)
        return thread

    def _reply(self, forum: Forum, thread: Thread, at: int) -> None:
        parent = self._answered(thread)
        comment = Comment(
            id=f"c{len(self.comment_hashes) + 1}",
            post_id=thread.post.id,
            parent_id=parent.id if parent else None,
            author=self._prose.author(),
            body=self._prose.comment_body(forum.theme),
            created_at=_iso(at),
            depth=parent.depth + 1 if parent else 0,
        )
        thread.comments.append(comment)
        thread.revision += 1
        forum.activity[thread.post.id] = forum.activity.pop(thread.post.id)
        forum.revision += 1
        self.comment_hashes[comment.id] = comment_hash(comment)

    def _answered(self, thread: Thread) -> Comment | None:
        """The comment that a reply answers, or None for the post; late comments are answered more often than early ones."""
        if not thread.comments or self._rng.random() < 0.4:
            return None
        position = int(len(thread.comments) * self._rng.random() ** 0.5)
        parent = thread.comments[position]
        return parent if parent.depth < MAX_DEPTH else None


def _iso(at: int) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
