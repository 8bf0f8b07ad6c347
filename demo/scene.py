"""What the audience can see at a moment: figures, what is happening now, what has happened."""

from __future__ import annotations

import time
from dataclasses import dataclass

from sqlalchemy import func, select

from cli.fleet_view import FleetView, look
from workers.storage import comments, posts

from .stage import Stage

COUNT_EVERY_S = 1.0  # rows and the forum's own figures; Redis is looked at each time


@dataclass(frozen=True, kw_only=True)
class Event:
    """Something that has happened, `at_s` seconds after the start."""

    at_s: float
    text: str


@dataclass(frozen=True, kw_only=True)
class ForumFigures:
    """The forum as it says itself."""

    pieces: int  # posts and comments there are now
    served: int  # pages, refused ones included


class Scene:
    """Figures are None until there is something to count."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.now = "Starting."
        self.events: list[Event] = []
        self.fleet: FleetView | None = None
        self.forum: ForumFigures | None = None
        self.stored: tuple[int, int] | None = None  # posts, comments
        self.living = False  # whether the forum grows
        self._started = time.monotonic()
        self._pieces_at_start: int | None = None
        self._counted_at = 0.0

    @property
    def clock_s(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._started

    @property
    def stored_share(self) -> float:
        """Share of the forum's posts and comments that is in the database, 0 to 1."""
        if not (self.forum and self.stored):
            return 0.0
        return min(1.0, sum(self.stored) / max(1, self.forum.pieces))

    def happened(self, text: str) -> None:
        self.events.append(Event(at_s=self.clock_s, text=text))

    def look(self) -> None:
        """Read all figures that are there by now. Raises `redis.RedisError`, StorageError, ForumError."""
        if hasattr(self.stage, "client"):
            self.fleet = look(self.stage.client)
        if time.monotonic() - self._counted_at >= COUNT_EVERY_S:
            self._counted_at = time.monotonic()
            self.count()

    def count(self) -> None:
        """Count the rows and ask the forum, now."""
        if hasattr(self.stage, "database"):
            (stored_posts,) = next(self.stage.database.stream(select(func.count()).select_from(posts)))
            (stored_comments,) = next(self.stage.database.stream(select(func.count()).select_from(comments)))
            self.stored = stored_posts, stored_comments
        if self.stage.forum.url:
            self.forum = self._ask_forum()

    def _ask_forum(self) -> ForumFigures:
        said = self.stage.forum.stats()
        if self._pieces_at_start is None:
            truth = self.stage.forum.truth()
            self._pieces_at_start = len(truth["posts"]) + len(truth["comments"]) - truth["revision"]
        # Each event of its life is one post or one comment more.
        return ForumFigures(pieces=self._pieces_at_start + said["revision"], served=said["total"])
