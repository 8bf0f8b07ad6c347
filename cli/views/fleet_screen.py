"""The overview of the fleet on one screen of any size: problems first, then what has room."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.text import Text

from forums.overview import Overview, ServiceView, problems
from forums.overview.model import shown_state
from redis_components.admin.lanes import in_one_line
from redis_components.server.health import Problem
from workers.state.registry import CrawlerRecord, CrawlerState
from workers.state.rolls import RollState

from .columns import INDENT, LEAST_BELOW, Column, FittedTable, figures
from .holds import held_table, sites_table
from .nodes import nodes_line, nodes_table
from .output import duration, iso

FOREIGN_SHOWN = 10
ERRORS_SHOWN = 5
LOG_LINES_SHOWN = 5  # of a crawler that was given up; `--json` has all that its record holds
LEAST_ROWS = 3  # of a table on a screen without room

_STATE_STYLES = {
    CrawlerState.STARTING: "yellow",
    CrawlerState.RUNNING: "green",
    CrawlerState.STOPPING: "yellow",
    CrawlerState.BACKING_OFF: "magenta",
    CrawlerState.CRASH_LOOPING: "bold red",
    CrawlerState.REFUSED: "bold red",
    CrawlerState.STOPPED: "dim",
}
_QUIET = {CrawlerState.RUNNING, CrawlerState.STARTING, CrawlerState.STOPPING, CrawlerState.STOPPED}


@dataclass(frozen=True)
class FleetScreen:
    """The whole screen. `height`: lines that there are; crawlers without trouble, then details, are left out where those do not
    suffice, and counted. None: everything is shown.
    """

    view: Overview
    redis_name: str = ""
    height: int | None = None

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        def lines(*parts: RenderableType) -> int:
            return sum(len(console.render_lines(part, options.update(height=None), pad=False)) for part in parts)

        parts = self._everything() if self.height is None else self._chosen(lines, self.height)
        yield from parts

    def _everything(self) -> list[RenderableType]:
        head: list[RenderableType] = [headline(self.view, self.redis_name), ProblemLines(problems(self.view))]
        return [*head, *self._core(None, None), Text(""), *_standing(self.view), *_details(self.view)]

    def _chosen(self, lines: Callable[..., int], height: int) -> list[RenderableType]:
        """What has room: the first that fits of fewer nodes and fewer problems; then as many crawlers and details as fit."""
        found, standing = problems(self.view), list(_standing(self.view))
        troubled = sum(_in_trouble(one, self.view.now) for one in self.view.crawlers)
        least = min(max(troubled, 1), LEAST_ROWS)
        for problem_room, nodes in ((8, LEAST_ROWS), (8, 1), (8, 0), (6, 0), (4, 0), (2, 0)):
            head = [headline(self.view, self.redis_name), _fitted_problems(found, lines, problem_room)]
            rows = height - lines(*head, *self._core(0, nodes), *standing) - 1  # a line says what is left out
            if rows >= least:
                break
        parts = [*head, *self._core(max(rows, least), nodes), *standing]
        left = height - lines(*parts)
        for part in _details(self.view):
            if lines(part) > left - 1:
                return [*parts, Text("more: trawl status --all", style="dim")] if left > 0 else parts
            left -= lines(part)
            parts.append(part)
        return parts

    def _core(self, crawlers: int | None, nodes: int | None) -> list[RenderableType]:
        few = None if self.height is None else LEAST_ROWS
        parts: list[RenderableType] = []
        if held := [one for one in self.view.held if not one.by_breaker]:  # those are among the problems
            parts += [held_table(held, self.view.now, most=few), Text("")]
        parts += [services_table(self.view, most=few and 2 * few), Text(""), crawlers_table(self.view, most=crawlers)]
        if self.view.nodes and nodes == 0:
            parts += [nodes_line(self.view.nodes, self.view.now)]
        elif self.view.nodes:
            parts += [Text(""), nodes_table(self.view.nodes, self.view.now, most=nodes)]
        return parts


def _fitted_problems(found: list[Problem], lines: Callable[..., int], room: int) -> RenderableType:
    """The first ones, at least one."""
    number = len(found)
    while number > 1 and lines(ProblemLines(found[:number], left_out=len(found) - number)) > room + 1:
        number -= 1
    return ProblemLines(found[:number], left_out=len(found) - number)


def headline(view: Overview, redis_name: str) -> Text:
    """When this was, and whose Redis it is."""
    return Text.assemble(("trawl", "bold"), f"  {iso(view.now)}  {redis_name}\n")


@dataclass(frozen=True)
class ProblemLines:
    """Each problem with its next step; the worst first."""

    found: list[Problem]
    left_out: int = 0

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if not self.found:
            yield Text("All is well.", style="green")
        for one in self.found:
            text = Text(one.what, style="" if one.grave else "dim")
            if one.fix:
                text.append(f" → {one.fix}", style="yellow")
            mark = Text("✗ " if one.grave else "! ", style="bold red" if one.grave else "yellow")
            for line in text.wrap(console, max(LEAST_BELOW, options.max_width - INDENT), overflow="fold"):
                line.rstrip()
                yield mark + line
                mark = Text(" " * INDENT)
        if self.left_out:
            yield Text(f"  and {self.left_out:,} more", style="dim")
        yield Text("")


def services_table(view: Overview, *, most: int | None = None) -> FittedTable:
    """One line per service: crawlers, what waits, what was done."""
    parked = any(one.crawl.parked + one.crawl.parked_tasks for one in view.services)
    over = any(one.crawl.overflow for one in view.services)
    columns = [
        Column(name="service"),
        Column(name="crawlers", right=True),
        *figures("tasks", rank=2),
        *figures("ready"),
        *figures("leased", rank=4),
        *figures("dead", rank=1),
        *figures("pages", rank=6),
        *figures("pages/s", rank=1),
        *figures("items", rank=7),
        *figures("to store", rank=5),
        *figures("refused", rank=3),
        *(figures("parked", rank=4) if parked else ()),
        *(figures("overflow", rank=8) if over else ()),
    ]
    rows = []
    for one in view.services:
        more = [_count(one.crawl.parked + one.crawl.parked_tasks)] if parked else []
        more += [_count(one.crawl.overflow)] if over else []
        rows.append((Text(one.name), *_figures(one), *more))
    return FittedTable(columns, rows, most=most)


def _figures(one: ServiceView) -> list[Text]:
    crawl = one.crawl
    desired = one.desired or 0
    enough = one.alive >= desired
    crawlers = Text(f"{one.alive}/{desired} {one.state}".rstrip(), style="green" if enough and not one.state else "yellow")
    if not one.is_known:
        unknown = Text("?", style="bold red")
        return [crawlers, *[unknown] * 5, Text(f"{one.pages_per_s:,.0f}"), *[unknown] * 3]
    return [
        crawlers,
        _count(crawl.start_tasks),
        _count(crawl.ready),
        _count(crawl.leased + crawl.leased_tasks),
        _count(crawl.dead, bad=True),
        _count(one.pages),
        Text(f"{one.pages_per_s:,.0f}"),
        _count(one.scraped),
        _count(one.items_waiting),
        _count(one.items_refused, bad=True),
    ]


def _count(number: int, *, bad: bool = False) -> Text:
    return Text(f"{number:,}", style="bold red" if bad and number else "" if number else "dim")


def crawlers_table(view: Overview, *, most: int | None = None) -> RenderableType:
    """One line per crawler slot, also of those that are empty at the moment; those in trouble first."""
    if not view.crawlers:
        return Text("No crawler has reported.", style="dim")
    columns = [
        Column(name="crawler"),
        Column(name="state"),
        *figures("pid", rank=7),
        *figures("pages/s", rank=1),
        *figures("in flight", rank=4),
        *figures("memory", rank=3),
        *figures("heard", rank=2),
        *figures("restarts", rank=5),
        Column(name="node", least=20, rank=6, cut=True),
        Column(name="last end", least=16, rank=8, cut=True),
    ]
    crawlers = sorted(view.crawlers, key=lambda one: not _in_trouble(one, view.now))
    return FittedTable(columns, [_crawler(one, view.now) for one in crawlers], most=most)


def _in_trouble(one: CrawlerRecord, now: float) -> bool:
    return one.state not in _QUIET or (one.state.has_process and not one.alive(now))


def _crawler(one: CrawlerRecord, now: float) -> list[str | Text]:
    alive = one.alive(now)
    gone = one.state.has_process and not alive  # it says that it runs, but nobody has heard it for long
    return [
        one.name,
        Text(shown_state(one, now), style="bold red" if gone else _STATE_STYLES[one.state]),
        str(one.pid) if alive and one.pid else "-",
        f"{one.pages_per_s:,.0f}" if alive else "-",
        f"{one.in_flight:,}" if alive else "-",
        f"{one.rss_bytes / 2**20:,.0f} MiB" if alive and one.rss_bytes else "-",
        duration(now - one.beat_at),
        f"{one.restarts}",
        one.node,
        one.last_exit or "-",
    ]


def _standing(view: Overview) -> Iterator[Text]:
    """One line each: who sends what is scheduled, what sizes itself, the roll under way."""
    if view.beats is not None:
        said = "nothing is sent" if view.beats.stalled else view.beats.sentence()  # why is among the problems
        yield Text.assemble(("beat  ", "bold"), Text(said, style="bold red" if view.beats.stalled else ""))
    for name, sized in view.autoscaled.items():
        yield Text(f"{name} sizes itself, {sized.policy.min} to {sized.policy.max}: {sized.memory.why or 'no decision yet'}")
    if said := in_one_line(view.sites.lanes):
        yield Text.assemble(("limits  ", "bold"), f"{said}: trawl lanes")
    if view.roll and view.roll.state is RollState.ROLLING:
        yield Text(f"roll {view.roll.sentence()}", style="yellow")


def _details(view: Overview) -> Iterator[RenderableType]:
    """What stands behind the problems, then the last errors."""
    if view.sites.in_trouble:
        yield _spaced(sites_table(view.sites, view.now))
    for one in view.crawlers:
        if one.state.given_up and (said := log_of(one)):
            yield _spaced(said)
    if view.foreign:
        yield _spaced(foreign_lines(view))
    if view.errors:
        yield _spaced(errors_table(view))


def _spaced(part: RenderableType) -> RenderableType:
    return Group(Text(""), part)


def log_of(one: CrawlerRecord) -> Text | None:
    """What a crawler that was given up said last; None where nothing is known."""
    lines = [line for line in (one.log or "").splitlines() if line.strip() and line.strip() != one.error]
    if not lines:
        return None
    said = "".join(f"\n  {line}" for line in lines[-LOG_LINES_SHOWN:])
    return Text.assemble((f"{one.name} said last:", "bold"), Text(said, style="dim"))


def foreign_lines(view: Overview) -> Text:
    """What is not Trawl's in its keys, by key, field and value."""
    lines = [f"\n  {one}" for one in view.foreign[:FOREIGN_SHOWN]]
    more = len(view.foreign) - FOREIGN_SHOWN
    text = Text("Not Trawl's, and left out:", style="bold red")
    return text.append("".join(lines) + (f"\n  and {more} more" if more > 0 else ""), style="red")


def errors_table(view: Overview) -> FittedTable:
    """The last errors, newest first."""
    columns = (Column(name="last errors"), Column(name="", least=10, rank=1), Column(name=" ", least=30, rank=2, below=True))
    rows = [(Text(f"{duration(view.now - one.at)} ago", style="dim"), one.where, str(one)) for one in view.errors[:ERRORS_SHOWN]]
    return FittedTable(columns, rows)
