"""`trawl status`: the fleet on one screen."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.console import RenderableType
from rich.live import Live
from rich.text import Text

from cli.access.redis import NOTHING, redis_client, report_nothing_runs, running_url
from cli.views.fleet_screen import ERRORS_SHOWN, FleetScreen
from cli.views.fleet_tables import held_json, node_json, sites_json
from cli.views.options import AsJson
from cli.views.output import console, in_plain_json, print_json
from redis_components.errors import RedisUnavailable
from redis_components.server.untrusted_values import as_text
from redis_components.server.url import masked
from workers.overview import Overview, OverviewReader, ServiceView, problems
from workers.state.quarantine import Foreign
from workers.state.registry import CrawlerRecord

WELL, ATTENTION = 0, 1


def status(
    as_json: AsJson = False,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Refresh until Ctrl-C.")] = False,
    every: Annotated[float, typer.Option(min=0.1, metavar="SECONDS", help="Time between two refreshes.")] = 1.0,
    everything: Annotated[bool, typer.Option("--all", help="Show everything, also where it is longer than the screen.")] = False,
) -> int:
    """Show what needs attention, each with its next step; then services, queues, crawlers and the last errors.

    The command is read-only. **tasks** wait to become requests, **ready** requests wait for a crawler, **leased** requests are
    in progress, **dead** requests were given up and are kept with the reason. **overflow** holds tasks until there is capacity
    (SCHEDULER_MAX_FED_TASKS). **items** were scraped: **to store** wait for the database, **refused** were rejected.

    **Exit code**: 0 all is well (lines with `!` are notes), 1 something needs attention (`✗`), nothing runs, or Redis is away,
    2 wrong use. With --watch: 0 after Ctrl-C; --json prints a line for each refresh.
    A small terminal shows the worst problems first.

    **Examples:**

        trawl status
        trawl status --watch
        trawl status --json | jq '.services[].ready'
    """
    if not watch:
        return _show(look(), as_json, everything=everything)
    with suppress(KeyboardInterrupt):  # how a watch ends
        _repeat_json(every) if as_json else _repeat(every, everything=everything)
    return WELL


def look() -> tuple[Overview, str] | None:
    """Return the fleet and the name of its Redis; None when no Redis runs."""
    url = running_url()
    if url is None:
        return None
    with redis_client(url) as client:
        return OverviewReader(client).read(), masked(url)


def _show(seen: tuple[Overview, str] | None, as_json: bool, *, everything: bool = False) -> int:
    """Print the fleet; return the exit code."""
    if seen is None:
        report_nothing_runs(as_json)
        return ATTENTION
    view, name = seen
    if as_json:
        print_json({"running": True, "redis": name, **overview_json(view)})
    else:
        to = console()
        height = to.height - 1 if to.is_terminal and not everything else None  # the prompt takes a line
        to.print(FleetScreen(view, name, height))
    return ATTENTION if any(one.grave for one in problems(view)) else WELL


def _repeat_json(every: float) -> None:
    while True:
        try:
            _show(look(), as_json=True)
        except RedisUnavailable as error:  # it may come back: go on looking
            print_json({"running": False, "error": str(error)})
        time.sleep(every)


def _repeat(every: float, *, everything: bool) -> None:
    to = console()

    def picture() -> RenderableType:
        try:
            seen = look()
        except RedisUnavailable as error:  # it may come back: go on looking
            return Text(str(error), style="red")
        height = to.height if to.is_terminal and not everything else None
        return Text(NOTHING) if seen is None else FleetScreen(*seen, height)

    with Live(picture(), console=to, auto_refresh=False, screen=to.is_terminal) as live:
        while True:
            time.sleep(every)
            live.update(picture(), refresh=True)


def overview_json(view: Overview) -> dict[str, Any]:
    """Return the overview as `--json` shows it: names as in the tables."""
    from .deploy import roll_json
    from .scale import autoscaled_json

    sites = sites_json(view.sites)
    whole = {
        "at": view.now,
        "problems": problems(view),
        "unreadable": dict(view.unreadable),
        "held": [held_json(one) for one in view.held],
        "another_database": sites.pop("another_database", False),
        "sites": sites,
        "dead_messages": view.dead_messages,
        "redis": view.server,
        "foreign": [_foreign_json(one) for one in view.foreign],
        "services": [_service_json(one) for one in view.services],
        "beat": {**asdict(view.beats), "stalled": view.beats.stalled} if view.beats else None,
        "crawlers": [_crawler_json(one, view.now) for one in view.crawlers],
        "nodes": [node_json(one, view.now) for one in view.nodes],
        "no_room": dict(view.shortages),
        "roll": roll_json(view.roll) if view.roll else None,
        "autoscaled": [autoscaled_json(name, one, view.size_of(name)) for name, one in view.autoscaled.items()],
        "errors": [
            {"at": one.at, "where": one.where, "what": one.what, "times": one.times} for one in view.errors[:ERRORS_SHOWN]
        ],
    }
    return dict(in_plain_json(whole))


def _foreign_json(one: Foreign) -> dict[str, Any]:
    """Return a foreign value as `--json` shows it; a field of null: the key has another type, or it is an entry of a list."""
    return {
        "key": one.key,
        "field": None if one.field is None else as_text(one.field),
        "value": as_text(one.value)[:200],
        "reason": one.reason,
    }


def _service_json(view: ServiceView) -> dict[str, Any]:
    crawl = view.crawl
    names = ("start_tasks", "ready", "leased", "leased_tasks", "parked", "parked_tasks", "overflow", "backlog", "thread_records")
    return {
        "service": view.name,
        "desired": view.desired,
        "alive": view.alive,
        "state": view.state or None,
        "fault": view.fault or None,
        **{name: getattr(crawl, name) for name in (*names, "dead", "item_bytes", "reclaimed")},
        "items_waiting": view.items_waiting,
        "bad_items": view.items_refused,
        "items_counted_for": view.items_of or None,
        "redis": crawl.redis or None,
        "item_consumer": crawl.consumer or None,
        "items_limit": crawl.max_items or None,
        "items_limit_bytes": crawl.max_item_bytes or None,
        "items_backed_up": crawl.backed_up,
        "pages": view.pages,
        "pages_per_s": view.pages_per_s,
        "items": view.scraped,
        "retried": view.retried,
    }


def _crawler_json(record: CrawlerRecord, now: float) -> dict[str, Any]:
    fields = asdict(record)
    age_s = round(now - fields.pop("beat_at"), 1)
    return {"crawler": record.name, "alive": record.alive(now), **fields, "heartbeat_age_s": age_s}
