"""Signals that end a crawler process from outside: SIGTERM and SIGINT."""

from __future__ import annotations

import signal
from types import FrameType

from workers.process.wake import Wake


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
