"""`trawl status`: the fleet on one screen."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer

from cli.access import NOTHING, redis_client, report_nothing_runs, running_url
from cli.views.options import AsJson
from cli.views.output import print_json
from redis_components.errors import ConfigError, RedisUnavailable

if TYPE_CHECKING:  # where nothing runs, all of it would be loaded for one line
    from rich.console import RenderableType

    from fleet_operations.overview import Overview

WELL, ATTENTION = 0, 1
EVERY_S = 1.0


def status(
    as_json: AsJson = False,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Refresh until Ctrl-C.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="Show each row of each table, as a pipe gets it.")] = False,
) -> int:
    """Show what needs attention, each with its next step; then services, queues, crawlers and the last errors.

    The command is read-only. **tasks** wait to become requests, **ready** requests wait for a crawler, **leased** requests are
    in progress, **dead** requests were given up and are kept with the reason. **overflow** holds tasks until there is capacity
    (SCHEDULER_MAX_FED_TASKS). **items** were scraped: **to store** wait for the database, **refused** were rejected.

    **Exit code**: 0 all is well (lines with `!` are notes), 1 something needs attention (`✗`), nothing runs, or Redis is away,
    2 wrong use. With --watch: 0 after Ctrl-C. The worst problems are shown first.

    **Examples:**

        trawl status
        trawl status --watch
        trawl status --json | jq '.services[].ready'
    """
    if not watch:
        return _show(look(), as_json, everything=everything)
    if as_json:
        raise ConfigError("--watch draws a screen: repeat `trawl status --json` instead")
    with suppress(KeyboardInterrupt):  # how a watch ends
        _repeat(everything=everything)
    return WELL


def look() -> tuple[Overview, str] | None:
    """Return the fleet and the name of its Redis; None when no Redis runs."""
    url = running_url()
    if url is None:
        return None
    from fleet_operations.overview import OverviewReader
    from redis_components.server.printable import masked

    with redis_client(url) as client:
        return OverviewReader(client).read(), masked(url)


def _show(seen: tuple[Overview, str] | None, as_json: bool, *, everything: bool = False) -> int:
    """Print the fleet; return the exit code."""
    if seen is None:
        report_nothing_runs(as_json)
        return ATTENTION
    from cli.views.fleet_screen import FleetScreen
    from cli.views.fleet_tables import overview_json
    from cli.views.tables import console
    from fleet_operations.overview import problems

    view, name = seen
    if as_json:
        print_json({"running": True, "redis": name, **overview_json(view)})
    else:
        to = console()
        to.print(FleetScreen(view, name, everything or not to.is_terminal))
    return ATTENTION if any(one.grave for one in problems(view)) else WELL


def _repeat(*, everything: bool) -> None:
    from rich.live import Live
    from rich.text import Text

    from cli.views.fleet_screen import FleetScreen
    from cli.views.tables import console

    to = console()

    def picture() -> RenderableType:
        try:
            seen = look()
        except RedisUnavailable as error:  # it may come back: go on looking
            return Text(str(error), style="red")
        return Text(NOTHING) if seen is None else FleetScreen(*seen, everything or not to.is_terminal)

    with Live(picture(), console=to, auto_refresh=False, screen=to.is_terminal) as live:
        while True:
            time.sleep(EVERY_S)
            live.update(picture(), refresh=True)
