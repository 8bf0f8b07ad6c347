"""Progress of the demo: figures, the present step, and past events."""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass, replace

from sqlalchemy import ColumnElement, Table, func, select, true

from forums.overview import Overview, OverviewReader
from forums.state.services import FORUM_DETAIL
from forums.storage import comments, posts, revisions
from redis_components.crawl_admin.inspector import CrawlSnapshot
from redis_components.fleet.registry import CrawlerRecord

from .figures import ForumFigures, ForumGauge, Speed
from .processes import DemoProcesses

COUNT_EVERY_S = 0.5  # rows and the forum's own figures; Redis is read each time


@dataclass(frozen=True, kw_only=True)
class Event:
    """An event, `at_s` seconds after the start."""

    at_s: float
    text: str


class Progress:
    """Figures are None until there is something to count."""

    def __init__(self, processes: DemoProcesses) -> None:
        self.processes = processes
        self.doing = "Starting."
        self.events: list[Event] = []
        self.fleet: Overview | None = None
        self.forum: ForumFigures | None = None
        self.stored: tuple[int, int] | None = None  # posts, comments that exist in the forum as far as the crawl knows
        self.noticed = 0, 0  # edits, deletions
        self.living = False  # True while the forum grows
        self.speed = Speed(5.0)  # of the forum's pages
        self._speeds: defaultdict[str, Speed] = defaultdict(Speed)  # of each service's pages
        self._gauge = ForumGauge(processes.forum)
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

    def read(self) -> None:
        """Read all figures that exist by now. Raises `redis.RedisError`, StorageError, ForumError."""
        if self.processes.client:
            self.fleet = self._measured(OverviewReader(self.processes.client).read())
        if time.monotonic() - self._counted_at >= COUNT_EVERY_S:
            self.count()

    @property
    def detail(self) -> CrawlSnapshot:
        """The queue of the service that reads threads."""
        assert self.fleet
        return self.fleet.service(FORUM_DETAIL).crawl

    def crawler(self, name: str) -> CrawlerRecord | None:
        assert self.fleet
        return next((c for c in self.fleet.crawlers if c.name == name), None)

    def count(self) -> None:
        """Count the rows and query the forum, now."""
        self._counted_at = time.monotonic()
        if self.processes.database:
            self.stored = self._count(posts, posts.c.deleted_at.is_(None)), self._count(comments, comments.c.deleted_at.is_(None))
            edits = self._count(revisions, true())
            deletions = self._count(posts, posts.c.deleted_at.is_not(None)) + self._count(
                comments, comments.c.deleted_at.is_not(None)
            )
            self.noticed = edits, deletions
        if self.processes.forum.url:
            self.forum = self._gauge.read()
            self.speed.add(self.clock_s, self.forum.pages)

    def _count(self, table: Table, which: ColumnElement[bool]) -> int:
        assert self.processes.database
        (number,) = next(self.processes.database.stream(select(func.count()).select_from(table).where(which)))
        return int(number)

    def _measured(self, fleet: Overview) -> Overview:
        """Return the fleet with the pages per second of the last seconds; a crawler's own mean is longer and ends with it."""
        services = (replace(one, pages_per_s=self._speeds[one.name].add(self.clock_s, one.pages)) for one in fleet.services)
        return replace(fleet, services=tuple(services))
