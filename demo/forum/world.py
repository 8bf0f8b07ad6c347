"""Activity of the forum over time: day and night, and bursts. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from math import pi, sin
from random import Random

from .content import Changes, Comment, Forum, History, Post, Thread, comment_hash, iso, post_hash
from .words import THEMES, Prose

DAY_S = 86_400
BURST_S = 900
_SWING = 0.8  # the busiest hour has (1 + swing) / (1 - swing) = nine times the events of the quietest
_BURST_SHARE, _BURST_FACTOR = 0.1, 4.0
_QUIET_FACTOR = (1 - _BURST_SHARE * _BURST_FACTOR) / (1 - _BURST_SHARE)


def liveliness(seed: int, forum_s: float) -> float:
    """Return the factor of the rate of events `forum_s` seconds of forum time after the opening; its mean is 1.

    A day is a sine (the opening is at its mean, rising). Every quarter of an hour is either a burst, one in ten, or a little
    quieter than the mean: traffic of forums comes in bursts, not as a Poisson process.
    """
    day = 1 + _SWING * sin(2 * pi * forum_s / DAY_S)
    burst = Random(f"forum bursts {seed} {int(forum_s // BURST_S)}").random() < _BURST_SHARE
    return day * (_BURST_FACTOR if burst else _QUIET_FACTOR)


def popularity(forums: int, skew: float, forum_s: float) -> list[float]:
    """Return a weight for each forum, in order: the power law rank ** -skew. The ranks move by one forum each day of forum
    time, so that activity does not stay where a crawler has learned it.
    """
    days = int(forum_s // DAY_S)
    return [((index + days) % forums + 1) ** -skew for index in range(forums)]


OPENING = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp())
HISTORY_DAYS = 60.0
_HISTORY_S = 60 * 86_400
MAX_DEPTH = 7
_NEW_THREAD_SHARE = 0.1
_TAIL = 1.6  # exponent of the power law of comment counts: most threads have few, some have hundreds
_LONGEST = 60  # no thread starts with more than this many times the mean


@dataclass(frozen=True, kw_only=True)
class Size:
    """Size of the forum at the start: forums, threads in each, the mean number of comments of a thread, and the forum time in
    which they were written.
    """

    forums: int = 5
    threads: int = 60
    comments: float = 8.0
    history_days: float = HISTORY_DAYS


@dataclass(frozen=True, kw_only=True)
class Mix:
    """Mix of events: the shares that edit, delete or move something (the others publish), and the skew over forums."""

    edit: float = 0.0
    delete: float = 0.0
    move: float = 0.0
    skew: float = 0.0


class World:
    """All forums, and the truth about them.

    `revision` counts the events since the start. `post_hashes` and `comment_hashes` map the id of each existing piece to the
    hash of its content; `history` has the edits and deletions; `gone` the HTTP status of each deleted thread's address.
    """

    def __init__(self, seed: int, size: Size, pace: float = 0.0, clock: Callable[[], float] | None = None) -> None:
        self.revision = 0
        self.pace = pace
        self.forums: dict[str, Forum] = {}
        self.threads: dict[str, Thread] = {}
        self.post_hashes: dict[str, str] = {}
        self.comment_hashes: dict[str, str] = {}
        self.history = History()
        self.gone: dict[str, int] = {}
        self.latest: dict[str, str] = {}  # the thread of each shown message, by its id, the newest last
        self._clock = clock
        self._history = size.history_days / HISTORY_DAYS
        self.opening: float = clock() if clock else OPENING
        self._events_at: float = self.opening
        self._posts = self._comments = 0
        self._rng = Random(f"forum content {seed}")
        self._prose = Prose(self._rng)
        self._changes = Changes(self, seed)
        for number in range(1, size.forums + 1):
            self._found_forum(number, size)
        dated = {comment.id: comment.created_at for thread in self.threads.values() for comment in thread.comments}
        dated |= {thread: one.post.created_at for thread, one in self.threads.items()}
        self.latest = dict(sorted(self.latest.items(), key=lambda entry: dated[entry[0]]))

    @property
    def now(self) -> float:
        """The time in seconds since 1970: the clock's, or that of the last event."""
        return self._clock() if self._clock else self._events_at

    @property
    def forum_s(self) -> float:
        """Seconds of forum time since the opening."""
        return (self.now - self.opening) * (self.pace or 1)

    def advance(self, mix: Mix = Mix()) -> None:
        """Run one event: a new thread (one in ten), or a reply, most likely to a recently active thread; or a change.

        A change without an object (no comment left to delete) becomes a publication.
        """
        step = self._rng.randint(1, 120)
        self._events_at = max(self._clock(), self._events_at) if self._clock else self._events_at + step
        self.revision += 1
        forums = list(self.forums.values())
        if mix.skew:
            (forum,) = self._rng.choices(forums, popularity(len(forums), mix.skew, self.forum_s))
        else:
            forum = self._rng.choice(forums)
        if not self._changes.happen(forum, mix, self._events_at):
            self._publish(forum)

    def recently_active(self, forum: Forum, rng: Random) -> Thread:
        """Return, four times in five, one of the last dozen or so, else any, so that old threads come back to the top too."""
        rank = int(rng.expovariate(1 / 6)) if rng.random() < 0.8 else rng.randrange(len(forum.activity))
        return next(islice(reversed(forum.activity.values()), rank % len(forum.activity), None))

    def _publish(self, forum: Forum) -> None:
        at = self._events_at
        if not forum.activity or self._rng.random() < _NEW_THREAD_SHARE:
            self.history.publish("posts", self._open_thread(forum, at, sticky=False).post.id, at)
        else:
            comment = self._reply(forum, self.recently_active(forum, self._rng), at)
            self.history.publish("comments", comment.id, at)

    def _found_forum(self, number: int, size: Size) -> None:
        theme = THEMES[(number - 1) % len(THEMES)]
        volume = (number - 1) // len(THEMES) + 1
        name = theme.name if volume == 1 else f"{theme.name} {volume}"
        forum = self.forums[f"f{number}"] = Forum(id=f"f{number}", theme=theme, name=name)
        sticky = min(3, -(-size.threads // 40))
        for index in range(size.threads):
            age = self._rng.randint(60, _HISTORY_S)
            thread = self._open_thread(forum, self._past(age), sticky=index < sticky)
            # Early replies are dense and late ones sparse; each is dated before the opening.
            delays = sorted(self._rng.random() ** 3 for _ in range(self._power_law(size.comments)))
            for delay in delays:
                self._reply(forum, thread, self._past(age - 1 - int(delay * (age - 2))))
        by_activity = sorted(forum.activity.values(), key=lambda t: (t.last_reply_at, int(t.post.id[1:])))
        forum.activity = {thread.post.id: thread for thread in by_activity}

    def _past(self, age_s: float) -> float:
        """Return the time of so many seconds before the opening, in a history of the usual length."""
        return self.opening - age_s * self._history / (self.pace or 1)

    def _power_law(self, mean: float) -> int:
        """Draw a comment count from a Lomax distribution (a shifted Pareto), whose mean is scale / (tail - 1)."""
        drawn = mean * (_TAIL - 1) * (self._rng.paretovariate(_TAIL) - 1)
        return round(min(drawn, _LONGEST * mean))

    def _open_thread(self, forum: Forum, at: float, *, sticky: bool) -> Thread:
        self._posts += 1
        post = Post(
            id=f"p{self._posts}",
            forum_id=forum.id,
            title=self._prose.title(forum.theme),
            body=self._prose.post_body(forum.theme),
            author=self._prose.author(),
            created_at=iso(at),
            sticky=sticky,
        )
        thread = self.threads[post.id] = forum.activity[post.id] = Thread(post=post)
        forum.revision += 1
        self.latest[post.id] = post.id
        self.post_hashes[post.id] = post_hash(post)
        return thread

    def _reply(self, forum: Forum, thread: Thread, at: float) -> Comment:
        parent = self._answered(thread)
        self._comments += 1
        comment = Comment(
            id=f"c{self._comments}",
            post_id=thread.post.id,
            parent_id=parent.id if parent else None,
            author=self._prose.author(),
            body=self._prose.comment_body(forum.theme),
            created_at=iso(at),
            depth=parent.depth + 1 if parent else 0,
        )
        thread.comments.append(comment)
        thread.revision += 1
        forum.activity[thread.post.id] = forum.activity.pop(thread.post.id)
        forum.revision += 1
        self.latest[comment.id] = thread.post.id
        self.comment_hashes[comment.id] = comment_hash(comment)
        return comment

    def _answered(self, thread: Thread) -> Comment | None:
        """Choose the comment that a reply answers, or None for the post; late comments are answered more often than early
        ones.
        """
        if not thread.comments or self._rng.random() < 0.4:
            return None
        position = int(len(thread.comments) * self._rng.random() ** 0.5)
        parent = thread.comments[position]
        return parent if parent.depth < MAX_DEPTH and not parent.deleted else None
