"""Ends a crawler when its supervisor has died, for any reason."""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


class Parent:
    """The process that launched this one."""

    def __init__(self, pid: int) -> None:
        self._pid = pid

    def bind(self) -> None:
        """Ask the kernel for SIGTERM when the parent *thread* ends; where there is no such thing, `gone` alone must do."""
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)

    def gone(self) -> bool:
        """Return True if the parent has died: also when that was before `bind`, or when its signal was lost."""
        return os.getppid() != self._pid
