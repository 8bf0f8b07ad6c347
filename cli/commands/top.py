"""`trawl top`: the fleet live, to look through with keys."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from forums.overview import Overview


def top(
    every: Annotated[float, typer.Option(min=0.5, max=3600, metavar="SECONDS", help="Time between two looks.")] = 2.0,
) -> int:
    """Look through the live fleet with keys: overview, services, crawlers, boards, problems.

    `1` to `5` or Tab change the screen, `s` sorts by the next column, `r` turns the order round, `/` shows only rows with a
    word, Escape all of them again, `q` ends. The command is read-only. It needs the extra `top`; `trawl status --watch` needs
    nothing.

    **Examples:**

        trawl top
        trawl top --every 5
    """
    from redis_components.errors import ConfigError

    try:
        from cli.views.top_app import FleetTop
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "textual":
            raise
        raise ConfigError("trawl top needs Textual: pip install 'trawl-fleet[top]'; or use trawl status --watch") from None
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise ConfigError("trawl top needs a terminal: use trawl status, or trawl status --json")
    FleetTop(_look, every).run()
    return 0


def _look() -> tuple[Overview, str] | str:
    from cli.commands.status import NOTHING, look
    from redis_components.errors import TrawlError

    try:
        return look() or NOTHING
    except TrawlError as error:
        return str(error)
