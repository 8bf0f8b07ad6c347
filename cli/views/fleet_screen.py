"""The overview of the fleet on one screen: problems first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.text import Text

from fleet_operations.overview import WELL, Overview, ServiceView, calm, problems
from fleet_operations.overview.model import shown_state
from redis_components.admin.health import Problem
from redis_components.admin.lanes import in_one_line
from workers.state.registry import CrawlerRecord, CrawlerState
from workers.state.rolls import RollState

from .fleet_tables import ERRORS_SHOWN, held_table, in_trouble_first, node_columns, sites_table
from .output import duration, iso
from .tables import INDENT, LEAST_BELOW, Column, FittedTable, figure

SILENT_S = 5.0  # a crawler that missed two heartbeats may have died with its node
LEAST_ROWS, MOST_ROWS = 3, 8  # of a table where not everything is shown

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
    """The whole screen. Not `everything`: of each table the first rows, those in trouble before others; the rest is counted."""

    view: Overview
    redis_name: str = ""
    everything: bool = True

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        view, found = self.view, problems(self.view)
        few, more = (None, None) if self.everything else (LEAST_ROWS, MOST_ROWS)
        yield Text.assemble(("trawl", "bold"), f"  {iso(view.now)}  {self.redis_name}\n")
        if not found:
            yield calm_line(calm(view))
        yield from (line for one in found[:more] for line in _problem_lines(one, console, options.max_width))
        if more and found[more:]:
            yield Text(f"  and {len(found[more:]):,} more", style="dim")
        yield Text("")
        if held := [one for one in view.held if not one.by_breaker]:  # those of breakers are among the problems
            yield from (held_table(held, view.now, most=few), Text(""))
        yield from (services_table(view, most=more), Text(""), crawlers_table(view, most=more))
        if view.nodes:
            rows = in_trouble_first(view.nodes, view.now)
            yield from (Text(""), FittedTable(node_columns(view.now), rows, most=few))
        yield from (Text(""), *_standing(view))
        if view.sites.in_trouble:
            yield from (Text(""), sites_table(view.sites, view.now))
        if view.errors:
            yield from (Text(""), errors_table(view))


def calm_line(state: str) -> Text:
    """Return the state of a fleet without problems as a sentence."""
    return Text(f"{state[:1].upper()}{state[1:]}.", style="green" if state == WELL else "yellow")


def _problem_lines(one: Problem, console: Console, width: int) -> Iterator[Text]:
    """Yield a problem with its next step."""
    text = Text(one.what, style="" if one.grave else "dim")
    if one.fix:
        text.append(f" → {one.fix}", style="yellow")
    mark = Text("✗ " if one.grave else "! ", style="bold red" if one.grave else "yellow")
    for line in text.wrap(console, max(LEAST_BELOW, width - INDENT), overflow="fold"):
        line.rstrip()
        yield mark + line
        mark = Text(" " * INDENT)


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


def errors_table(view: Overview) -> FittedTable:
    """Return the last errors, newest first."""
    columns = (
        Column("last errors", lambda one: Text(f"{duration(view.now - one.at)} ago", style="dim")),
        Column("", "where", least=10, rank=1),
        Column(" ", str, least=30, rank=2, below=True),
    )
    return FittedTable(columns, view.errors[:ERRORS_SHOWN])
