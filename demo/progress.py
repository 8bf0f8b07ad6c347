"""Figures of a run: the forum's statistics, and the growth of a count."""

from __future__ import annotations

import time
from collections import Counter, defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass, replace

from sqlalchemy import ColumnElement, Table, func, select, true

from forums.overview import Overview, OverviewReader
from forums.state.forum_states import FORUM_DETAIL
from forums.storage import comments, posts, revisions
from redis_components.admin.inspector import CrawlSnapshot
from workers.state.registry import CrawlerRecord

from .followed import pages_of
from .forum.process import ForumProcess
from .processes import DemoProcesses


@dataclass(frozen=True, kw_only=True)
class ForumFigures:
    """The forum's statistics."""

    pieces: int  # existing posts and comments
    size: int  # existing pages
    served: Mapping[str, int]  # pages by HTTP status

    @property
    def pages(self) -> int:
        """Pages asked for, refused ones included."""
        return sum(self.served.values())


class ForumGauge:
    """Reader of the forum's statistics."""

    def __init__(self, forum: ForumProcess) -> None:
        self._forum = forum

    def read(self) -> ForumFigures:
        """Return the present figures. Raises ForumError."""
        stats = self._forum.stats()
        served: Counter[str] = Counter()
        for by_status in stats["served"].values():
            served.update(by_status)
        return ForumFigures(pieces=stats["posts"] + stats["comments"], size=pages_of(stats), served=served)


class Speed:
    """Growth of a count over the last `window_s` seconds, which smooths gusts."""

    def __init__(self, window_s: float = 3.0) -> None:
        self._window_s = window_s
        self._counts: deque[tuple[float, int]] = deque()
        self.best = 0.0  # per second, over a whole window

    def add(self, at_s: float, count: int) -> float:
        """Add the count at this time; return the speed per second."""
        self._counts.append((at_s, count))
        while len(self._counts) > 2 and at_s - self._counts[1][0] >= self._window_s:
            self._counts.popleft()
        then, before = self._counts[0]
        if at_s <= then:
            return 0.0
        speed = (count - before) / (at_s - then)
        if at_s - then >= self._window_s:
            self.best = max(self.best, speed)
        return speed


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
