"""A FleetView as tables on one screen."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from redis_components.database_note import ANOTHER_DATABASE
from redis_components.fleet_records import GONE_AFTER_S
from redis_components.holds import HoldWord
from redis_components.registry import CrawlerRecord, CrawlerState, ErrorRecord
from redis_components.rolls import RollState
from workers.clock import complaint

from .breaker_view import sites_table
from .fleet_view import FleetView, ServiceView
from .held_view import held_table
from .nodes import nodes_table
from .output import duration, iso, plain_table

LOG_LINES_SHOWN = 5  # of a crawler that was given up; `--json` has all that its record holds

_STATE_STYLES = {
    CrawlerState.STARTING: "yellow",
    CrawlerState.RUNNING: "green",
    CrawlerState.STOPPING: "yellow",
    CrawlerState.BACKING_OFF: "magenta",
    CrawlerState.CRASH_LOOPING: "bold red",
    CrawlerState.REFUSED: "bold red",
    CrawlerState.STOPPED: "dim",
}


def screen(view: FleetView) -> RenderableType:
    """What is held, services, crawlers, nodes, who sends what is scheduled, what is wrong."""
    held = [one for one in view.held if not one.by_breaker]  # those stand in the next table
    parts: list[RenderableType] = [held_table(held, view.now), ""] if held else []
    parts += [sites_table(view.sites, view.now), ""] if view.sites else []
    parts += [services_table(view), "", crawlers_table(view)]
    for one in view.crawlers:
        if one.state.given_up:
            parts += ["", given_up(one)]
    if view.nodes:
        parts += ["", nodes_table(view.nodes, view.now)]
    parts += ["", _beat(view)]
    if view.another_database:
        parts += [Text(ANOTHER_DATABASE, style="bold red")]
    for name, sized in view.autoscaled.items():
        parts += [f"{name} sizes itself, {sized.policy.min} to {sized.policy.max}: {sized.memory.why or 'no decision yet'}"]
    if view.roll and view.roll.state in (RollState.ROLLING, RollState.FAILED):
        parts += [Text(f"roll {view.roll.sentence()}", style="red" if view.roll.state is RollState.FAILED else "yellow")]
    if view.errors:
        parts += ["", errors_table(view)]
    if hint := _hint(view):
        parts += ["", Text(hint, style="yellow")]
    return Group(*parts)


def services_table(view: FleetView) -> Table:
    """One line per service: crawlers, what waits, what was done."""
    table = plain_table()
    table.add_column("service", no_wrap=True)
    for name in ("crawlers", "tasks", "ready", "leased", "dead", "pages", "pages/s", "items", "to store", "refused"):
        table.add_column(name, justify="right", no_wrap=True)
    parked = any(one.crawl.parked + one.crawl.parked_tasks for one in view.services)
    if parked:
        table.add_column("parked", justify="right", no_wrap=True)
    for one in view.services:
        more = [_count(one.crawl.parked + one.crawl.parked_tasks)] if parked else []
        table.add_row(one.name, *_figures(one), *more)
    return table


def _figures(one: ServiceView) -> list[Text]:
    crawl = one.crawl
    enough = one.alive >= one.desired
    return [
        Text(f"{one.alive}/{one.desired} {one.state}".rstrip(), style="green" if enough and not one.state else "yellow"),
        _count(crawl.start_tasks),
        _count(crawl.ready),
        _count(crawl.leased + crawl.leased_tasks),
        _count(crawl.dead, bad=True),
        _count(one.pages),
        Text(f"{one.pages_per_s:,.0f}"),
        _count(one.scraped),
        _count(crawl.items),
        _count(crawl.bad_items, bad=True),
    ]


def _count(number: int, *, bad: bool = False) -> Text:
    return Text(f"{number:,}", style="bold red" if bad and number else "" if number else "dim")


def crawlers_table(view: FleetView) -> RenderableType:
    """One line per crawler slot, also of those that are empty at the moment."""
    if not view.crawlers:
        return Text("No crawler has been heard of.", style="dim")
    table = plain_table()
    table.add_column("crawler", no_wrap=True)
    table.add_column("state", no_wrap=True)
    for name in ("pid", "pages/s", "in flight", "memory", "heard", "restarts"):
        table.add_column(name, justify="right", no_wrap=True)
    for name in ("node", "last end"):  # where there is no room, these two fold
        table.add_column(name, overflow="fold", max_width=24)
    for one in view.crawlers:
        table.add_row(*_crawler(one, view.now))
    return table


def _crawler(one: CrawlerRecord, now: float) -> list[str | Text]:
    alive, age = one.alive(now), now - one.beat_at
    gone = one.state.has_process and not alive  # it says that it runs, but nobody has heard it for long
    return [
        one.name,
        Text("gone", style="bold red") if gone else Text(one.state, style=_STATE_STYLES[one.state]),
        str(one.pid) if alive and one.pid else "-",
        f"{one.pages_per_s:,.0f}" if alive else "-",
        f"{one.in_flight:,}" if alive else "-",
        f"{one.rss_bytes / 2**20:,.0f} MiB" if alive and one.rss_bytes else "-",
        duration(age),
        f"{one.restarts}",
        one.node,
        one.last_exit or "-",
    ]


def _beat(view: FleetView) -> Text:
    """Who sends what is scheduled; red where nobody does, for then nothing begins any more."""
    return Text.assemble(("beat  ", "bold"), Text(view.beats.sentence(), style="bold red" if view.beats.stalled else ""))


def given_up(one: CrawlerRecord) -> Text:
    """Why a slot is left alone, what its crawler said last, and what to do."""
    lines = [line for line in (one.log or "").splitlines() if line.strip() and line.strip() != one.error]
    text = Text.assemble((f"{one.name} is {one.state}", "bold red"), f": {one.note or one.last_exit or 'no reason is known'}")
    if one.error:
        text.append(f"\n  {one.error}", style="bold")
    for line in lines[-LOG_LINES_SHOWN:]:
        text.append(f"\n  {line}", style="dim")
    text.append("\n  It is tried again each minute, and at once when its configuration changes,", style="yellow")
    text.append(f"\n  or by `trawl resume {one.spider}`.", style="yellow")
    return text


def errors_table(view: FleetView) -> Table:
    """The last errors, newest first."""
    table = plain_table()
    table.add_column("last errors", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("")
    for one in view.errors:
        table.add_row(*_error(one, view.now))
    return table


def _error(one: ErrorRecord, now: float) -> list[Text]:
    return [Text(f"{duration(now - one.at)} ago", style="dim"), Text(one.where), Text(str(one))]


def _hint(view: FleetView) -> str | None:
    """What a newcomer wonders about: why nothing happens."""
    stopped = {one.service for one in view.held if one.hold.word is HoldWord.STOP}
    wanted = [] if "" in stopped else [one for one in view.services if one.name not in stopped]
    hopeless = {one.spider for one in view.crawlers if one.state.given_up}
    lately = [one for one in view.crawlers if view.now - one.beat_at < GONE_AFTER_S]
    failing = hopeless or any(one.state is CrawlerState.BACKING_OFF for one in lately)
    nodes = [node for node in view.nodes if node.alive(view.now)]
    if wrong := [f"{node.name}: {complaint(node.clock_off_s)}" for node in nodes if node.clock_off_s]:
        return "; ".join(wrong)
    dead = any(one.desired for one in wanted) and not (failing or any(one.alive for one in view.services))
    if dead and nodes and all(node.draining for node in nodes):
        return "Every node is being drained. Start another one, or `trawl resume --node NAME`."
    if dead and not nodes:
        return "No crawler is alive. Start the fleet with `trawl up`, or a node with `celery -A tasks worker` (and beat once)."
    if view.shortages:
        sentences = "; ".join(f"{service}: {sentence}" for service, sentence in view.shortages.items())
        return f"{sentences}. Start another node, or raise TRAWL_NODE_CRAWLERS."
    short = [one for one in wanted if one.alive < one.desired and one.name not in hopeless]
    if short:
        names = ", ".join(f"{one.name} has {one.alive} of {one.desired} crawlers" for one in short)
        return f"{names}: they are starting, or were given up (the column state tells)."
    return None


def headline(view: FleetView, redis_name: str) -> Text:
    """When this was, and whose Redis it is."""
    return Text.assemble(("trawl", "bold"), f"  {iso(view.now)}  {redis_name}", style="")
