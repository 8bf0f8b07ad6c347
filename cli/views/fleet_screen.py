"""The overview of the fleet on one screen of any size: problems first, then what has room."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.text import Text

from redis_components.admin.health import Problem
from redis_components.admin.lanes import in_one_line
from workers.overview import WELL, Overview, ServiceView, calm, problems
from workers.overview.model import shown_state
from workers.state.registry import CrawlerRecord, CrawlerState
from workers.state.rolls import RollState

from .fleet_tables import ERRORS_SHOWN, held_table, in_trouble_first, node_columns, nodes_line, sites_table
from .output import duration, iso
from .tables import INDENT, LEAST_BELOW, Column, FittedTable, figure

FOREIGN_SHOWN = 10
LOG_LINES_SHOWN = 5  # of a crawler that was given up; `--json` has all that its record holds
SILENT_S = 5.0  # a crawler that missed two heartbeats may have died with its node
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
    """The whole screen. `height`: its lines; where they do not suffice, crawlers without trouble, then details, are left out and
    counted. None: everything is shown.
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
        head: list[RenderableType] = [headline(self.view, self.redis_name), ProblemLines(problems(self.view), calm(self.view))]
        return [*head, *self._core(None, None), Text(""), *_standing(self.view), *_details(self.view)]

    def _chosen(self, lines: Callable[..., int], height: int) -> list[RenderableType]:
        """Return the parts that have room: with the most nodes and problems, then the most crawlers and details."""
        found, standing = problems(self.view), list(_standing(self.view))
        troubled = sum(_in_trouble(one, self.view.now) for one in self.view.crawlers)
        least = min(max(troubled, 1), LEAST_ROWS)
        for problem_room, nodes in ((8, LEAST_ROWS), (8, 1), (8, 0), (6, 0), (4, 0), (2, 0)):
            head = [headline(self.view, self.redis_name), _fitted_problems(self.view, found, lines, problem_room)]
            rows = height - lines(*head, *self._core(0, nodes), *standing) - 1  # a line for the number of crawlers left out
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
        if held := [one for one in self.view.held if not one.by_breaker]:  # those of breakers are among the problems
            parts += [held_table(held, self.view.now, most=few), Text("")]
        parts += [services_table(self.view, most=few and 2 * few), Text(""), crawlers_table(self.view, most=crawlers)]
        if self.view.nodes and nodes == 0:
            parts += [nodes_line(self.view.nodes, self.view.now)]
        elif self.view.nodes:
            rows = in_trouble_first(self.view.nodes, self.view.now)
            parts += [Text(""), FittedTable(node_columns(self.view.now), rows, most=nodes)]
        return parts


def _fitted_problems(view: Overview, found: list[Problem], lines: Callable[..., int], room: int) -> RenderableType:
    """Return the first problems that fit, at least one."""
    number = len(found)
    while number > 1 and lines(ProblemLines(found[:number], calm(view), left_out=len(found) - number)) > room + 1:
        number -= 1
    return ProblemLines(found[:number], calm(view), left_out=len(found) - number)


def headline(view: Overview, redis_name: str) -> Text:
    """Return the time of the overview and the name of its Redis."""
    return Text.assemble(("trawl", "bold"), f"  {iso(view.now)}  {redis_name}\n")


@dataclass(frozen=True)
class ProblemLines:
    """Each problem with its next step; the worst first."""

    found: list[Problem]
    calm: str
    """State of the fleet where there is none."""
    left_out: int = 0

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if not self.found:
            yield Text(f"{self.calm[:1].upper()}{self.calm[1:]}.", style="green" if self.calm == WELL else "yellow")
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
    """Return one line per service: crawlers, waiting work, and what was done."""
    columns = [
        Column("service", lambda one: Text(one.name)),
        figure("crawlers", _crawlers),
        _known("tasks", lambda one: one.crawl.start_tasks, rank=2),
        _known("ready", lambda one: one.crawl.ready),
        _known("leased", lambda one: one.crawl.leased + one.crawl.leased_tasks, rank=4),
        _known("dead", lambda one: one.crawl.dead, rank=1, bad=True),
        _known("pages", lambda one: one.pages, rank=6),
        figure("pages/s", lambda one: f"{one.pages_per_s:,.0f}", rank=1),
        _known("items", lambda one: one.scraped, rank=7),
        _known("to store", lambda one: one.items_waiting, rank=5),
        _known("refused", lambda one: one.items_refused, rank=3, bad=True),
    ]
    if any(one.crawl.parked + one.crawl.parked_tasks for one in view.services):
        columns.append(figure("parked", lambda one: _count(one.crawl.parked + one.crawl.parked_tasks), rank=4))
    if any(one.crawl.overflow for one in view.services):
        columns.append(figure("overflow", lambda one: _count(one.crawl.overflow), rank=8))
    return FittedTable(columns, view.services, most=most)


def _crawlers(one: ServiceView) -> Text:
    desired = one.desired or 0
    well = one.alive >= desired and not one.state
    return Text(f"{one.alive}/{desired} {one.state}".rstrip(), style="green" if well else "yellow")


def _known(name: str, count: Callable[[ServiceView], int], *, rank: int = 0, bad: bool = False) -> Column:
    """Return a column of counts; "?" for a service whose keys cannot be read."""

    def text(one: ServiceView) -> Text:
        return _count(count(one), bad=bad) if one.is_known else Text("?", style="bold red")

    return figure(name, text, rank=rank)


def _count(number: int, *, bad: bool = False) -> Text:
    return Text(f"{number:,}", style="bold red" if bad and number else "" if number else "dim")


def crawlers_table(view: Overview, *, most: int | None = None) -> RenderableType:
    """Return one line per crawler slot, also of empty slots; crawlers in trouble first."""
    if not view.crawlers:
        return Text("No crawler has reported.", style="dim")
    now = view.now

    def alive(text: Callable[[CrawlerRecord], str]) -> Callable[[CrawlerRecord], str]:
        return lambda one: text(one) if one.alive(now) else "-"

    columns = [
        Column("crawler", "name"),
        Column("state", lambda one: _state(one, now)),
        figure("pid", alive(lambda one: str(one.pid or "-")), rank=7),
        figure("pages/s", alive(lambda one: f"{one.pages_per_s:,.0f}"), rank=1),
        figure("in flight", alive(lambda one: f"{one.in_flight:,}"), rank=4),
        figure("memory", alive(lambda one: f"{one.rss_bytes / 2**20:,.0f} MiB" if one.rss_bytes else "-"), rank=3),
        figure("heard", lambda one: duration(now - one.beat_at), rank=2),
        figure("restarts", lambda one: f"{one.restarts}", rank=5),
        Column("node", "node", least=20, rank=6, cut=True),
        Column("last end", lambda one: one.last_exit or "-", least=16, rank=8, cut=True),
    ]
    return FittedTable(columns, sorted(view.crawlers, key=lambda one: not _in_trouble(one, now)), most=most)


def _state(one: CrawlerRecord, now: float) -> Text:
    gone = one.state.has_process and not one.alive(now)  # its record is of a running process, without a recent heartbeat
    silent_s = now - one.beat_at
    if one.state.has_process and not gone and silent_s >= SILENT_S:
        return Text(f"{one.state}, silent {duration(silent_s)}", style="yellow")
    return Text(shown_state(one, now), style="bold red" if gone else _STATE_STYLES[one.state])


def _in_trouble(one: CrawlerRecord, now: float) -> bool:
    return one.state not in _QUIET or (one.state.has_process and not one.alive(now))


def _standing(view: Overview) -> Iterator[Text]:
    """Yield one line each: the leading beat, autoscaled services, limits, the running roll."""
    if view.beats is not None:
        line = "nothing is sent" if view.beats.stalled else view.beats.sentence()  # the reason is among the problems
        yield Text.assemble(("beat  ", "bold"), Text(line, style="bold red" if view.beats.stalled else ""))
    for name, sized in view.autoscaled.items():
        yield Text(f"{name} sizes itself, {sized.policy.min} to {sized.policy.max}: {sized.memory.why or 'no decision yet'}")
    if line := in_one_line(view.sites.lanes):
        yield Text.assemble(("limits  ", "bold"), f"{line}: trawl limit")
    if view.roll and view.roll.state is RollState.ROLLING:
        yield Text(f"roll {view.roll.sentence()}", style="yellow")


def _details(view: Overview) -> Iterator[RenderableType]:
    """Yield the details of the problems, then the last errors."""
    if view.sites.in_trouble:
        yield _spaced(sites_table(view.sites, view.now))
    for one in view.crawlers:
        if one.state.given_up and (lines := log_of(one)):
            yield _spaced(lines)
    if view.foreign:
        yield _spaced(foreign_lines(view))
    if view.errors:
        yield _spaced(errors_table(view))


def _spaced(part: RenderableType) -> RenderableType:
    return Group(Text(""), part)


def log_of(one: CrawlerRecord) -> Text | None:
    """Return the last log lines of a crawler that was given up; None where there are none."""
    lines = [line for line in (one.log or "").splitlines() if line.strip() and line.strip() != one.error]
    if not lines:
        return None
    last = "".join(f"\n  {line}" for line in lines[-LOG_LINES_SHOWN:])
    return Text.assemble((f"last lines of {one.name}:", "bold"), Text(last, style="dim"))


def foreign_lines(view: Overview) -> Text:
    """Return the values in Trawl's keys that Trawl did not write, by key, field and value."""
    lines = [f"\n  {one}" for one in view.foreign[:FOREIGN_SHOWN]]
    more = len(view.foreign) - FOREIGN_SHOWN
    text = Text("Not Trawl's, and left out:", style="bold red")
    return text.append("".join(lines) + (f"\n  and {more} more" if more > 0 else ""), style="red")


def errors_table(view: Overview) -> FittedTable:
    """Return the last errors, newest first."""
    columns = (
        Column("last errors", lambda one: Text(f"{duration(view.now - one.at)} ago", style="dim")),
        Column("", "where", least=10, rank=1),
        Column(" ", str, least=30, rank=2, below=True),
    )
    return FittedTable(columns, view.errors[:ERRORS_SHOWN])
