"""Figures of a running demo, and their display: a live screen on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections import Counter, defaultdict, deque
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text
from sqlalchemy import ColumnElement, FromClause, func, select, true

from cli.views.fleet_screen import crawlers_table, services_table
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
            self.forum = ForumFigures.of(self.processes.forum.stats())
            self.speed.add(self.clock_s, self.forum.pages)

    def _count(self, table: FromClause, which: ColumnElement[bool]) -> int:
        assert self.processes.database
        (number,) = next(self.processes.database.stream(select(func.count()).select_from(table).where(which)))
        return int(number)

    def _measured(self, fleet: Overview) -> Overview:
        """Return the fleet with the pages per second of the last seconds; a crawler's own mean is longer and ends with it."""
        services = (replace(one, pages_per_s=self._speeds[one.name].add(self.clock_s, one.pages)) for one in fleet.services)
        return replace(fleet, services=tuple(services))


LINE_EVERY_S = 3.0  # between two lines of progress without a terminal
EVENTS_SHOWN = 3  # on a screen, so that 24 lines are enough
CRAWLERS_SHOWN = 4
BAR_WIDTH = 8


def make_display(console: Console) -> Screen | Lines:
    """Return a context manager around all calls of its `show`."""
    return Screen(console) if console.is_terminal else Lines(console)


class Screen:
    """One picture, drawn again each time; removed at the end, except for the events."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, auto_refresh=False, transient=True)
        self._last: Progress | None = None

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._live.__exit__(kind, error, trace)
        if self._last:
            self._console.print(*(_line(event) for event in self._last.events), sep="\n")

    def show(self, progress: Progress) -> None:
        self._last = progress
        self._live.update(picture(progress), refresh=True)


class Lines(AbstractContextManager["Lines"]):
    """A line for each event, and one of progress every few seconds."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._printed = 0
        self._progress_at = 0.0

    def __exit__(self, *_: object) -> None:
        """Leave what was printed."""

    def show(self, progress: Progress) -> None:
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


def picture(progress: Progress) -> RenderableType:
    """Render the whole screen: 24 lines at 60 columns or more."""
    parts: list[RenderableType] = [
        Text.assemble((f"Trawl demo  {clock(progress.clock_s)}", "bold"), "   Ctrl-C ends it at any time"),
        _cut(Text.assemble(("▶ ", "bold green"), (progress.doing, "bold"))),
        "",
    ]
    if progress.fleet:
        parts += [services_table(progress.fleet), "", crawlers_table(progress.fleet, most=CRAWLERS_SHOWN), ""]
    if progress.forum and progress.stored:
        parts += [_gauges(progress), ""]
    return Group(*parts, *(_cut(_line(event)) for event in progress.events[-EVENTS_SHOWN:]))


def _cut(text: Text) -> Text:
    """Cut a line to the screen's width; at the end all events are printed in full."""
    text.no_wrap, text.overflow = True, "ellipsis"
    return text


def _gauges(progress: Progress) -> Table:
    assert progress.forum
    assert progress.stored
    processes = progress.processes
    posts, comments = progress.stored
    share = f"{percent(progress.stored_share)}   {posts:,} posts and {comments:,} comments"
    bar = Table.grid(padding=(0, 1))
    bar.add_column(width=BAR_WIDTH)
    bar.add_column(no_wrap=True)
    bar.add_row(ProgressBar(total=1.0, completed=progress.stored_share, width=BAR_WIDTH), share)
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    life = f"{processes.options.demo_rate:g} changes a second" if progress.living else "stands still"
    table.add_row("stored", bar)
    table.add_row("forum", f"{progress.forum.pieces:,} pieces, {life}, {progress.forum.pages:,} pages")
    edits, deletions = progress.noticed
    table.add_row("noticed", f"{edits:,} edits, {deletions:,} deletions")
    for name, address in addresses(processes):
        table.add_row(name, address)
    return table


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
    return f"{percent(progress.stored_share)} stored, {edits:,} edits and {deletions:,} deletions noticed; {services}"


def percent(share: float) -> str:
    """Format a share; `100 %` only for all of it."""
    return f"{int(share * 100)} %"


def clock(seconds: float) -> str:
    """Format a time, as in `0:07`."""
    return f"{int(seconds // 60)}:{int(seconds % 60):02d}"
