"""Become another program that ends when its parent does: `die_with_parent.py PARENT_PID PROGRAM [ARGUMENT...]`.

Run by path with `python -I -S`, so it starts in some 15 ms and needs nothing installed. The child asks the kernel itself,
between fork and exec of the real program: a `preexec_fn` is not safe in a parent with threads. The signal is sent when the
parent *thread* ends, so start processes from a thread that stays.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def tied(*command: str) -> list[str]:
    """Return `command` in a form that ends with this process, which starts it."""
    return [sys.executable, "-I", "-S", __file__, str(os.getpid()), *command]


def main(parent: int, command: list[str]) -> None:
    """Become `command`, tied to `parent`; exit code 1 where that one is gone already."""
    if sys.platform == "linux":  # elsewhere nothing like it exists: the next keeper shuts an orphan down before it starts its own
        # SIGTERM, not SIGKILL: the server writes its append-only file before it goes.
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:  # it died before we could ask
        sys.exit(1)
    os.execv(command[0], command)  # noqa: S606 - no shell is what we want


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
