"""Ends a crawler when its supervisor has died, for any reason."""

from __future__ import annotations

import ctypes
import os
import select
import signal
import sys
from types import FrameType

from workers.process.pipes import Wake

PR_SET_PDEATHSIG = 1


class Parent:
    """The supervisor that had this process launched."""

    def __init__(self, pid: int, pulse_fd: int | None = None) -> None:
        self._pid = pid
        self._pulse = select.poll() if pulse_fd is not None else None
        if self._pulse and pulse_fd is not None:
            self._pulse.register(pulse_fd, 0)  # an error of a pipe without a reader is reported all the same

    def bind(self) -> None:
        """Ask the kernel for SIGTERM when the parent *thread* ends, or the warm parent that this process was forked from; where
        there is no such thing, `gone` alone must do.
        """
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)

    def gone(self) -> bool:
        """Return True if the supervisor has died: also when that was before `bind`, or when its signal was lost."""
        return bool(self._pulse.poll(0)) if self._pulse else os.getppid() != self._pid


class StopSignals:
    """SIGTERM and SIGINT, counted: the first asks for a graceful stop; of a crawler started by hand the second for one at once.

    A supervised crawler is killed by its supervisor when it is late. There a second signal means nothing: systemd, for one, sends
    SIGTERM to every process of a service, and the supervisor and the kernel (its death) send theirs.

    The handler only counts. crochet, logging and `threading.Event` take locks that the interrupted code may hold.
    """

    def __init__(self) -> None:
        self.count = 0
        self.wake = Wake()
        """Wakes the main thread."""

    def listen(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._count)
        self.wake.on_signals()

    def _count(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 - the form of a handler
        self.count += 1
