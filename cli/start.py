"""The program `trawl`: Ctrl-C while its modules are loaded ends it without a traceback, as it does later."""

from __future__ import annotations

import gc
import os
import signal
import sys
from contextlib import suppress
from types import FrameType

from .command_table import HELP, short_help

WRONG_USE, INTERRUPTED = 2, 130
SOON_S = 0.02


def main() -> int:
    """Run the command of this process's arguments; return the exit code."""
    signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))  # nothing has been started, and nothing has to be cleaned up
    gc.set_threshold(300_000, 5, 5)  # a short life: imports allocate much and free nothing, and 50 ms of collections find nothing
    _open_what_is_closed()
    if sys.argv[1:2] == ["health"] and not {*HELP} & {*sys.argv}:  # costs an orchestrator milliseconds, not all commands
        from .health import main as health

        return health(sys.argv[2:])
    if text := short_help(sys.argv[1:]):
        with suppress(OSError):  # the reader has enough, or there is no room
            os.write(sys.stdout.fileno(), text.encode())
        return 0 if sys.argv[1:] else WRONG_USE
    from .main import main as run

    signal.signal(signal.SIGALRM, interrupt)
    signal.signal(signal.SIGINT, interrupt)
    try:
        return run()
    except KeyboardInterrupt:  # while an error is printed, or the audit is written
        return INTERRUPTED
    finally:
        gc.freeze()  # Python would search all loaded objects twice at the end, 0.1 s


def interrupt(_number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt; a moment later, where Python ignores it: in the callback that releases the lock of an import."""
    while frame is not None:
        if frame.f_code.co_name == "cb" and frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            signal.setitimer(signal.ITIMER_REAL, SOON_S)
            return
        frame = frame.f_back
    raise KeyboardInterrupt


def _open_what_is_closed() -> None:
    """Open closed standard streams on /dev/null: after `2>&-` the next socket would get the number of standard error."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # the lowest free number, which is `number`
            setattr(sys, name, os.fdopen(number, "r" if number == 0 else "w", encoding="utf-8", closefd=False))
