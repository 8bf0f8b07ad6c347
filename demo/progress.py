"""Figures of a running demo, and their display in lines."""

from __future__ import annotations

import time
from typing import Any

from rich.console import Console
from rich.text import Text
from sqlalchemy import ColumnElement, FromClause, func, select, true

from fleet_operations.overview import Overview, OverviewReader
from forums import FORUM_DETAIL
from forums.storage import comments, posts, revisions
from redis_components.admin.inspector import CrawlSnapshot
from workers.state.registry import CrawlerRecord

from .processes import DemoProcesses

COUNT_EVERY_S = 0.5  # rows and the forum's own figures; Redis is read each time


class Progress:
    """Figures are None until there is something to count."""

    def __init__(self, processes: DemoProcesses, console: Console) -> None:
        self.processes = processes
        self._console = console
        self.fleet: Overview | None = None
        self.forum: dict[str, Any] | None = None  # its answer to `/stats`
        self.stored: tuple[int, int] | None = None  # posts, comments that exist in the forum as far as the crawl knows
        self.noticed = 0, 0  # edits, deletions
        self._started = time.monotonic()
        self._counted_at = 0.0

    @property
    def clock_s(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._started

    @property
    def pieces(self) -> int:
        """Posts and comments that exist in the forum."""
        assert self.forum
        return int(self.forum["posts"] + self.forum["comments"])

    @property
    def stored_share(self) -> float:
        """Share of the forum's posts and comments that is in the database, 0 to 1."""
        if not (self.forum and self.stored):
            return 0.0
        return min(1.0, sum(self.stored) / max(1, self.pieces))

    def happened(self, text: str) -> None:
        """Print a line for an event."""
        self._console.print(Text.assemble((f"{clock(self.clock_s)}  ", "dim"), text), soft_wrap=True)

    def read(self) -> None:
        """Read all figures that exist by now. Raises `redis.RedisError`, StorageError, ForumFailed."""
        if self.processes.client:
            self.fleet = OverviewReader(self.processes.client).read()
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
            self.forum = self.processes.forum.stats()

    def _count(self, table: FromClause, which: ColumnElement[bool]) -> int:
        assert self.processes.database
        (number,) = next(self.processes.database.stream(select(func.count()).select_from(table).where(which)))
        return int(number)


def addresses(processes: DemoProcesses) -> list[tuple[str, str]]:
    """Return the addresses for a browser, by name."""
    return [
        ("Flower", f"{processes.flower.url}   user {processes.flower.user}, password {processes.flower.password}"),
        ("exporter", f"{processes.page.url}   status page, and /metrics"),
    ]


def clock(seconds: float) -> str:
    """Format a time, as in `0:07`."""
    return f"{int(seconds // 60)}:{int(seconds % 60):02d}"
