"""`python -m demo.forum`: read the arguments, then run.

Exit code 0 after SIGTERM or SIGINT, 1 if it cannot serve, 2 for wrong use.
"""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path
from types import FrameType


def _leave(_signal: int, _frame: FrameType | None) -> None:
    sys.exit(0)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m demo.forum", description="A forum that lives and knows the truth about itself."
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=int, default=0, help="0 takes any free one (default)")
    parser.add_argument("--seed", type=int, default=1, help="the same seed, the same forum (default: %(default)s)")
    parser.add_argument("--forums", type=int, default=5, help="how many forums (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=60, help="threads in each forum (default: %(default)s)")
    parser.add_argument("--comments", type=float, default=8.0, help="mean per thread, power law (default: %(default)s)")
    parser.add_argument("--history-days", type=float, default=60.0, help="days in which they were written (default: %(default)s)")
    parser.add_argument("--rate", type=float, default=0.0, help="events per second; 0 stands still (default)")
    parser.add_argument(
        "--pace",
        type=float,
        default=1.0,
        help="seconds of forum time in a second: 60 makes a day of 24 minutes; 0 has no clock, and the same content to the byte:"
        " it begins on 2026-01-01, events alone move time (default: %(default)g, what was written ends now)",
    )
    parser.add_argument("--ready-file", type=Path, help='JSON {"url", "pid"}, written whole once the forum listens')
    return parser.parse_args()


def main() -> int:
    """Read the arguments and run the server."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _leave)
    args = _arguments()
    from . import server  # after the signal handlers: loading takes a while, and a signal may come

    return server.main(args)


if __name__ == "__main__":
    sys.exit(main())
