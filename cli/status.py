"""`trawl status`: the fleet on one screen."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from .fleet_view import FleetView

NOTHING = "Nothing is running here. Start the fleet with `trawl up`, or set TRAWL_REDIS_URL to look at another one."


def status(
    as_json: Annotated[bool, typer.Option("--json", help="Print one line of JSON (with --watch one per look).")] = False,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Look again and again, until Ctrl-C.")] = False,
    every: Annotated[float, typer.Option(min=0.1, metavar="SECONDS", help="Time between two looks.")] = 1.0,
) -> int:
    """Show services, queues, crawlers and the last errors on one screen.

    Looking changes nothing, and starts nothing. **tasks** wait to become requests, **ready** requests wait for
    a crawler, **leased** ones are being worked on, **dead** ones were given up and kept with the reason.
    **items** were scraped, of which **to store** wait for the database and **refused** were not taken.

    **Examples:**

        trawl status
        trawl status --watch
        trawl status --json | jq '.services[].ready'
    """
    if not watch:
        _show(_look(), as_json)
        return 0
    with suppress(KeyboardInterrupt):  # how a watch ends
        _repeat_json(every) if as_json else _repeat(every)
    return 0


def _look() -> tuple[FleetView, str] | None:
    """The fleet and the name of its Redis; None when no Redis runs that could know one."""
    from redis_components.redis_url import masked

    from .fleet_view import look
    from .redis_access import redis_client, running_url

    url = running_url()
    if url is None:
        return None
    with redis_client(url) as client:
        return look(client), masked(url)


def _show(seen: tuple[FleetView, str] | None, as_json: bool) -> None:
    from .fleet_screen import headline, screen
    from .output import console, print_json

    if as_json:
        print_json({"running": False} if seen is None else {"running": True, "redis": seen[1], **seen[0].to_json()})
    elif seen is None:
        print(NOTHING)
    else:
        console().print(headline(*seen), "", screen(seen[0]), sep="\n")


def _repeat_json(every: float) -> None:
    while True:
        _show(_look(), as_json=True)
        time.sleep(every)


def _repeat(every: float) -> None:
    from rich.console import Group, RenderableType
    from rich.live import Live
    from rich.text import Text

    from redis_components.errors import RedisUnavailable

    from .fleet_screen import headline, screen
    from .output import console

    def picture() -> RenderableType:
        try:
            seen = _look()
        except RedisUnavailable as error:  # it may come back: go on looking
            return Text(str(error), style="red")
        return Text(NOTHING) if seen is None else Group(headline(*seen), "", screen(seen[0]))

    with Live(picture(), console=console(), auto_refresh=False, screen=console().is_terminal) as live:
        while True:
            time.sleep(every)
            live.update(picture(), refresh=True)
