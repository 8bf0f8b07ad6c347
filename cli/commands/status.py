"""`trawl status`: the fleet on one screen."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Annotated

import typer
from rich.console import RenderableType
from rich.live import Live
from rich.text import Text

from cli.access.redis import NOTHING, redis_client, running_url
from cli.views.fleet_json import overview_json
from cli.views.fleet_screen import FleetScreen
from cli.views.output import console, print_json, say
from forums.overview import Overview, OverviewReader, problems
from redis_components.errors import RedisUnavailable
from redis_components.server.url import masked

WELL, ATTENTION = 0, 1


def status(
    as_json: Annotated[bool, typer.Option("--json", help="Print one line of JSON (with --watch one per refresh).")] = False,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Refresh until Ctrl-C.")] = False,
    every: Annotated[float, typer.Option(min=0.1, metavar="SECONDS", help="Time between two refreshes.")] = 1.0,
    everything: Annotated[bool, typer.Option("--all", help="Show everything, also where it is longer than the screen.")] = False,
) -> int:
    """Show what needs attention, each with its next step; then services, queues, crawlers and the last errors.

    The command is read-only. **tasks** wait to become requests, **ready** requests wait for a crawler, **leased** requests are
    in progress, **dead** requests were given up and are kept with the reason. **overflow** holds tasks until there is capacity
    (SCHEDULER_MAX_FED_TASKS). **items** were scraped: **to store** wait for the database, **refused** were rejected.

    **Exit code**: 0 all is well (lines with `!` are notes), 1 something needs attention (`✗`), nothing runs, or Redis is away,
    2 wrong use. With --watch: 0 after Ctrl-C. A terminal that is too small shows what matters most.

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
    """The fleet and the name of its Redis; None when no Redis runs that could know one."""
    url = running_url()
    if url is None:
        return None

    with redis_client(url) as client:
        return OverviewReader(client).read(), masked(url)


def _show(seen: tuple[Overview, str] | None, as_json: bool, *, everything: bool = False) -> int:
    """Print it; the exit code."""
    if seen is None:
        print_json({"running": False}) if as_json else say(NOTHING)
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
