"""What the audience can see at a moment: figures, what is happening now, what has happened."""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass, replace

from sqlalchemy import ColumnElement, Table, func, select, true

from forums.overview import Overview, OverviewReader
from forums.storage import comments, posts, revisions

from .figures import ForumFigures, ForumGauge, Speed
from .stage import Stage

COUNT_EVERY_S = 0.5  # rows and the forum's own figures; Redis is looked at each time


@dataclass(frozen=True, kw_only=True)
class Event:
    """Something that has happened, `at_s` seconds after the start."""

    at_s: float
    text: str


class Scene:
    """Figures are None until there is something to count."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.now = "Starting."
        self.events: list[Event] = []
        self.fleet: Overview | None = None
        self.forum: ForumFigures | None = None
        self.stored: tuple[int, int] | None = None  # posts, comments that are in the forum as far as the crawl knows
        self.noticed = 0, 0  # edits, deletions
        self.living = False  # whether the forum grows
        self.speed = Speed(5.0)  # of the forum's pages
        self._speeds: defaultdict[str, Speed] = defaultdict(Speed)  # of each service's pages
        self._gauge = ForumGauge(stage.forum)
        self._started = time.monotonic()
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
        if self.stage.client:
            self.fleet = self._measured(OverviewReader(self.stage.client).read())
        if time.monotonic() - self._counted_at >= COUNT_EVERY_S:
            self.count()

    def count(self) -> None:
        """Count the rows and ask the forum, now."""
        self._counted_at = time.monotonic()
        if self.stage.database:
            self.stored = self._count(posts, posts.c.deleted_at.is_(None)), self._count(comments, comments.c.deleted_at.is_(None))
            edits = self._count(revisions, true())
            deletions = self._count(posts, posts.c.deleted_at.is_not(None)) + self._count(
                comments, comments.c.deleted_at.is_not(None)
            )
            self.noticed = edits, deletions
        if self.stage.forum.url:
            self.forum = self._gauge.read()
            self.speed.add(self.clock_s, self.forum.pages)

    def _count(self, table: Table, which: ColumnElement[bool]) -> int:
        assert self.stage.database
        (number,) = next(self.stage.database.stream(select(func.count()).select_from(table).where(which)))
        return int(number)

    def _measured(self, fleet: Overview) -> Overview:
        """With the pages per second of the last seconds; the crawlers' own are means over longer, and go with a killed one."""
        services = (replace(one, pages_per_s=self._speeds[one.name].add(self.clock_s, one.pages)) for one in fleet.services)
        return replace(fleet, services=tuple(services))
