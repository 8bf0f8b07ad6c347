"""A process that ends when its parent does, however that one ends.

On Linux the kernel tells (PR_SET_PDEATHSIG); elsewhere a thread looks. The kernel's signal also comes when only the *thread* that
started us has ended, so it is not taken at its word: we end only if our parent is another process than before.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from types import FrameType

_PR_SET_PDEATHSIG = 1
_LOOK_S = 0.5


def end_with(parent_pid: int) -> None:
    """From now on, end by SIGTERM when `parent_pid` is our parent no more; also when that is so already.

    Call it from the main thread, once, after a handler for SIGTERM stands.
    """
    if not (sys.platform == "linux" and _ask_kernel(parent_pid)):
        threading.Thread(target=_look, args=(parent_pid,), name="parent-watch", daemon=True).start()
    _end_if_orphaned(parent_pid)  # it may have ended before we asked


def _ask_kernel(parent_pid: int) -> bool:
    def told(_signal: int, _frame: FrameType | None) -> None:
        _end_if_orphaned(parent_pid)

    signal.signal(signal.SIGHUP, told)
    return bool(ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGHUP, 0, 0, 0) == 0)


def _look(parent_pid: int) -> None:
    while os.getppid() == parent_pid:
        time.sleep(_LOOK_S)
    _end_if_orphaned(parent_pid)


def _end_if_orphaned(parent_pid: int) -> None:
    if os.getppid() != parent_pid:
        os.kill(os.getpid(), signal.SIGTERM)
