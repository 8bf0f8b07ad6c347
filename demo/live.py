"""What the audience sees: a live screen on a terminal, plain lines elsewhere."""

from __future__ import annotations

from types import TracebackType
from typing import Protocol, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from cli.views.fleet_screen import crawlers_table, services_table

from .scene import Event, Scene
from .stage import Stage

LINE_EVERY_S = 3.0  # between two lines of progress where there is no terminal
EVENTS_SHOWN = 3  # on a screen, so that 24 lines are enough
CRAWLERS_SHOWN = 4
BAR_WIDTH = 8


class Show(Protocol):
    """Shows a scene; entered before the first, left after the last."""

    def __enter__(self) -> Self: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None: ...

    def show(self, scene: Scene) -> None: ...


def make_show(console: Console) -> Show:
    return Screen(console) if console.is_terminal else Lines(console)


class Screen:
    """One picture, drawn anew each time; gone at the end, except for what has happened."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, auto_refresh=False, transient=True)
        self._last: Scene | None = None

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._live.__exit__(kind, error, trace)
        if self._last:
            self._console.print(*(_line(event) for event in self._last.events), sep="\n")

    def show(self, scene: Scene) -> None:
        self._last = scene
        self._live.update(picture(scene), refresh=True)


class Lines:
    """A line for each event, and one of progress every few seconds."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._told = 0
        self._progress_at = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        pass

    def show(self, scene: Scene) -> None:
        if scene.events and not self._told:
            for name, address in addresses(scene.stage):
                self._console.print(Text(f"        {name} {address}"), soft_wrap=True)
        for event in scene.events[self._told :]:
            self._console.print(_line(event), soft_wrap=True)
        if len(scene.events) > self._told:
            self._progress_at = scene.clock_s
        elif scene.clock_s - self._progress_at > LINE_EVERY_S:
            self._progress_at = scene.clock_s
            self._console.print(Text(f"{clock(scene.clock_s)}    {progress(scene)}"), soft_wrap=True)
        self._told = len(scene.events)


def picture(scene: Scene) -> RenderableType:
    """The whole screen: 24 lines at 60 columns or more."""
    parts: list[RenderableType] = [
        Text.assemble((f"Trawl demo  {clock(scene.clock_s)}", "bold"), "   Ctrl-C ends it at any time"),
        _cut(Text.assemble(("▶ ", "bold green"), (scene.now, "bold"))),
        "",
    ]
    if scene.fleet:
        parts += [services_table(scene.fleet), "", crawlers_table(scene.fleet, most=CRAWLERS_SHOWN), ""]
    if scene.forum and scene.stored:
        parts += [_gauges(scene), ""]
    return Group(*parts, *(_cut(_line(event)) for event in scene.events[-EVENTS_SHOWN:]))


def _cut(text: Text) -> Text:
    """One line of the screen; at the end all events are printed in full."""
    text.no_wrap, text.overflow = True, "ellipsis"
    return text


def _gauges(scene: Scene) -> Table:
    assert scene.forum
    assert scene.stored
    stage = scene.stage
    posts, comments = scene.stored
    share = f"{percent(scene.stored_share)}   {posts:,} posts and {comments:,} comments"
    bar = Table.grid(padding=(0, 1))
    bar.add_column(width=BAR_WIDTH)
    bar.add_column(no_wrap=True)
    bar.add_row(ProgressBar(total=1.0, completed=scene.stored_share, width=BAR_WIDTH), share)
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    life = f"{stage.options.rate:g} changes a second" if scene.living else "stands still"
    table.add_row("stored", bar)
    table.add_row("forum", f"{scene.forum.pieces:,} pieces, {life}, {scene.forum.pages:,} pages")
    edits, deletions = scene.noticed
    table.add_row("noticed", f"{edits:,} edits, {deletions:,} deletions")
    for name, address in addresses(stage):
        table.add_row(name, address)
    return table


def addresses(stage: Stage) -> list[tuple[str, str]]:
    """Where to look with a browser."""
    return [
        ("Flower", f"{stage.flower.url}   user {stage.flower.user}, password {stage.flower.password}"),
        ("exporter", f"{stage.exporter_url}   status page, and /metrics"),
    ]


def _line(event: Event) -> Text:
    return Text.assemble((f"{clock(event.at_s)}  ", "dim"), event.text)


def progress(scene: Scene) -> str:
    """One line of figures, for a log."""
    if not (scene.fleet and scene.forum and scene.stored):
        return scene.now
    services = "; ".join(
        f"{one.name} {one.alive}/{one.desired} crawlers, {one.pages:,} pages, {one.pages_per_s:.0f}/s,"
        f" {one.crawl.start_tasks + one.crawl.ready:,} waiting, {one.crawl.leased + one.crawl.leased_tasks:,} leased"
        for one in scene.fleet.services
    )
    edits, deletions = scene.noticed
    return f"{percent(scene.stored_share)} stored, {edits:,} edits and {deletions:,} deletions noticed; {services}"


def percent(share: float) -> str:
    """`87 %`, and `100 %` only for all of it."""
    return f"{int(share * 100)} %"


def clock(seconds: float) -> str:
    """`0:07`."""
    return f"{int(seconds // 60)}:{int(seconds % 60):02d}"
