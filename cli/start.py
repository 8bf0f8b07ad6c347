"""The program `trawl`: Ctrl-C while its modules are loaded ends it without a traceback, as it does later."""

from __future__ import annotations

import gc
import os
import signal
import sys
from types import FrameType

INTERRUPTED = 130
SOON_S = 0.02


def main() -> int:
    """Run the command of this process's arguments; returns the exit code."""
    signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))  # nothing has been started, and nothing has to be cleaned up
    gc.set_threshold(300_000, 5, 5)  # a short life: loading makes much and drops nothing, 50 ms of looking through it
    _open_what_is_closed()
    if sys.argv[1:2] == ["health"]:  # costs an orchestrator a few milliseconds, and not all commands
        from .health import main as health

        return health(sys.argv[2:])
    from .main import main as run

    signal.signal(signal.SIGALRM, interrupt)
    signal.signal(signal.SIGINT, interrupt)
    try:
        return run()
    except KeyboardInterrupt:  # in the moment when an error is told, or the audit is written
        return INTERRUPTED
    finally:
        gc.freeze()  # Python would look twice through all that was loaded, 0.1 s, and forget it with the process anyway


def interrupt(_number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt; a moment later, where Python ignores it: while it forgets the lock of an import."""
    while frame is not None:
        if frame.f_code.co_name == "cb" and frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            signal.setitimer(signal.ITIMER_REAL, SOON_S)
            return
        frame = frame.f_back
    raise KeyboardInterrupt


def _open_what_is_closed() -> None:
    """After `2>&-` there is no standard error: nothing can be told, and the next socket would get its number."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # the lowest free number, which is `number`
            setattr(sys, name, os.fdopen(number, "r" if number == 0 else "w", encoding="utf-8", closefd=False))
