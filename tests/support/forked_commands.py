"""`trawl mcp ARGUMENTS` whose commands are forked from it: each starts cold for a second of CPU, and a test asks for eight.

python -m tests.support.forked_commands mcp
"""

from __future__ import annotations

import importlib
import os
import sys
from asyncio import unix_events
from subprocess import DEVNULL, PIPE, STDOUT  # noqa: F401 - so that this module can stand for `subprocess`

from . import forked_crawlers
from .warm_start import PROGRAMS

ROOM = "ROOM_FOR_VARIABLES"
"""Names the variable that the server is started with, and its commands are not: /proc shows theirs in its memory."""


class Popen(forked_crawlers.Popen):
    """`subprocess.Popen`, which forks commands of Trawl."""

    programs = ("cli.main",)


def main() -> int:
    """Return the exit code."""
    os.environ.pop(ROOM, None)
    for module in PROGRAMS:
        importlib.import_module(module)
    forked_crawlers.fork_checks(sys.path[1:])
    vars(unix_events)["subprocess"] = sys.modules[__name__]  # it has what asyncio uses of it
    from cli.main import main as trawl

    return trawl(sys.argv[1:])


if __name__ == "__main__":
    sys.modules["tests.support.forked_commands"] = sys.modules["__main__"]
    sys.exit(main())
