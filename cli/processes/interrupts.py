"""Ctrl-C and SIGTERM, counted: the loop of a command that has to stop what it started looks at them when it is ready to."""

from __future__ import annotations

import signal
from types import FrameType


class Interrupts:
    """The first asks for the end, the second for a quick one. An exception in the middle of a start would lose a process."""

    def __init__(self) -> None:
        self.count = 0
        self.last = 0  # the number of the last signal

    def listen(self) -> None:
        """From now on count SIGINT, SIGTERM and SIGHUP (the terminal was closed). From the main thread."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # nohup: the terminal may go
                signal.signal(number, self._hear)

    @property
    def asked(self) -> bool:
        return self.count > 0

    @property
    def impatient(self) -> bool:
        return self.count > 1

    def _hear(self, number: int, _frame: FrameType | None) -> None:
        self.count += 1
        self.last = number
