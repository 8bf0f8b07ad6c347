"""Figures of a running demo, and their display in lines."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from rich.console import Console
from rich.text import Text
from sqlalchemy import ColumnElement, FromClause, func, select, true

from forums import FORUM_DETAIL
from forums.storage import comments, posts, revisions
from redis_components.admin.inspector import CrawlSnapshot
from workers.overview import Overview, OverviewReader
from workers.state.registry import CrawlerRecord

from .processes import DemoProcesses


@dataclass(frozen=True, kw_only=True)
class ForumFigures:
    """The forum's statistics."""

    pieces: int  # existing posts and comments
    served: Mapping[str, int]  # pages by HTTP status

    @classmethod
    def of(cls, stats: Mapping[str, Any]) -> Self:
        """Return the figures of the forum's answer to `/stats`."""
        served: Counter[str] = Counter()
        for by_status in stats["served"].values():
            served.update(by_status)
        return cls(pieces=stats["posts"] + stats["comments"], served=served)

    @property
    def pages(self) -> int:
        """Pages asked for, refused ones included."""
        return sum(self.served.values())


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
            self.forum = ForumFigures.of(self.processes.forum.stats())

    def _count(self, table: FromClause, which: ColumnElement[bool]) -> int:
        assert self.processes.database
        (number,) = next(self.processes.database.stream(select(func.count()).select_from(table).where(which)))
        return int(number)


LINE_EVERY_S = 3.0  # between two lines of progress


class Lines:
    """A line for each event, and one of progress every few seconds."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._printed = 0
        self._progress_at = 0.0

    def show(self, progress: Progress) -> None:
        """Print what happened since the last call; where nothing did for a while, the figures."""
        if progress.events and not self._printed:
            for name, address in addresses(progress.processes):
                self._console.print(Text(f"        {name} {address}"), soft_wrap=True)
        for event in progress.events[self._printed :]:
            self._console.print(_line(event), soft_wrap=True)
        if len(progress.events) > self._printed:
            self._progress_at = progress.clock_s
        elif progress.clock_s - self._progress_at > LINE_EVERY_S:
            self._progress_at = progress.clock_s
            self._console.print(Text(f"{clock(progress.clock_s)}    {progress_line(progress)}"), soft_wrap=True)
        self._printed = len(progress.events)


def addresses(processes: DemoProcesses) -> list[tuple[str, str]]:
    """Return the addresses for a browser, by name."""
    return [
        ("Flower", f"{processes.flower.url}   user {processes.flower.user}, password {processes.flower.password}"),
        ("exporter", f"{processes.page.url}   status page, and /metrics"),
    ]


def _line(event: Event) -> Text:
    return Text.assemble((f"{clock(event.at_s)}  ", "dim"), event.text)


def progress_line(progress: Progress) -> str:
    """Return one line of figures, for a log."""
    if not (progress.fleet and progress.forum and progress.stored):
        return progress.doing
    services = "; ".join(
        f"{one.name} {one.alive}/{one.desired} crawlers, {one.pages:,} pages, {one.pages_per_s:.0f}/s,"
        f" {one.crawl.start_tasks + one.crawl.ready:,} waiting, {one.crawl.leased + one.crawl.leased_tasks:,} leased"
        for one in progress.fleet.services
    )
    edits, deletions = progress.noticed
    figures = f"{percent(progress.stored_share)} stored, {edits:,} edits and {deletions:,} deletions noticed; {services}"
    return f"{progress.doing} {figures}"


def percent(share: float) -> str:
    """Format a share; `100 %` only for all of it."""
    return f"{int(share * 100)} %"


def clock(seconds: float) -> str:
    """Format a time, as in `0:07`."""
    return f"{int(seconds // 60)}:{int(seconds % 60):02d}"
