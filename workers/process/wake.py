"""Ends a wait early: for another thread, or for the handler of a signal in the same one."""

from __future__ import annotations

import os
import select
import signal
import weakref
from contextlib import suppress


class Wake:
    """A pipe, since a handler must not take locks, as `threading.Event` does: the code that it interrupts may hold them."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe()
        for descriptor in (self._read, self._write):
            os.set_blocking(descriptor, False)
        weakref.finalize(self, _close, self._read, self._write).atexit = False  # a caller of `set` keeps them open until then

    def on_signals(self) -> None:
        """End the wait at every signal with a handler; only in the main thread."""
        signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)

    def set(self) -> None:
        """End the wait of now, or the next one; from any thread or handler."""
        with suppress(BlockingIOError):  # it is full: it ends the wait in any case
            os.write(self._write, b"\0")

    def wait(self, seconds: float, *also: int) -> None:
        """Wait at most `seconds`; less when woken, or when one of the descriptors `also` can be read or has ended."""
        poll = select.poll()
        for descriptor in (self._read, *also):
            poll.register(descriptor, select.POLLIN)
        poll.poll(seconds * 1000)
        with suppress(BlockingIOError):
            os.read(self._read, 4096)


def _close(*descriptors: int) -> None:
    for descriptor in descriptors:
        os.close(descriptor)
