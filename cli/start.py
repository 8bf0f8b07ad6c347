"""The program `trawl`: Ctrl-C while its modules are loaded ends it without a traceback, as it does later."""

from __future__ import annotations

import os
import signal
import sys

INTERRUPTED = 130


def main() -> int:
    """Run the command of this process's arguments; returns the exit code."""
    signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))  # nothing has been started, and nothing has to be cleaned up
    if sys.argv[1:2] == ["health"]:  # costs an orchestrator a few milliseconds, and not all commands
        from .health import main as health

        return health(sys.argv[2:])
    from .main import main as run

    signal.signal(signal.SIGINT, signal.default_int_handler)
    return run()
