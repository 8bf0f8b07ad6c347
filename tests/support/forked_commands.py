"""Commands of `trawl` that a process of asyncio starts, forked from it: each would start cold for a second of CPU, and import the
SDK of MCP for another one where it is `trawl mcp`.
"""

from __future__ import annotations

import sys
from asyncio import unix_events
from subprocess import DEVNULL, PIPE, STDOUT  # noqa: F401 - so that this module can stand for `subprocess`

from . import forked_crawlers


class Popen(forked_crawlers.Popen):
    """`subprocess.Popen`, which forks commands of Trawl."""

    programs = ("cli.main",)


def fork_commands() -> None:
    """From now on, in this process and those that it forks; it is itself one that `tests.support.warm_start` has forked."""
    vars(unix_events)["subprocess"] = sys.modules[__name__]  # it has what asyncio uses of it
