"""Display of a running demo: a live screen on a terminal, plain lines elsewhere."""

from __future__ import annotations

from types import TracebackType
from typing import Protocol, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from cli.views.fleet_screen import crawlers_table, services_table

from .processes import DemoProcesses
from .progress import Event, Progress

LINE_EVERY_S = 3.0  # between two lines of progress without a terminal
EVENTS_SHOWN = 3  # on a screen, so that 24 lines are enough
CRAWLERS_SHOWN = 4
BAR_WIDTH = 8


class Display(Protocol):
    """Shows the progress; a context manager around all calls of `show`."""

    def __enter__(self) -> Self: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None: ...

    def show(self, progress: Progress) -> None: ...


def make_display(console: Console) -> Display:
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


class Lines:
    """A line for each event, and one of progress every few seconds."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._printed = 0
        self._progress_at = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        pass

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
    life = f"{processes.options.rate:g} changes a second" if progress.living else "stands still"
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
        ("exporter", f"{processes.exporter_url}   status page, and /metrics"),
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
