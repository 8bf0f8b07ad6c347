"""The pipe on which a crawler process reports its status to its supervisor, as lines of JSON."""

from __future__ import annotations

import os

from .wake import Wake

DYING_S = 0.02  # the pipe of a process that ends is closed shortly before it can be waited for


def pulse_pipe() -> tuple[PulseReader, int]:
    """Return the end to read from, and the descriptor for the crawler (`--pulse-fd`); neither side ever waits for the other."""
    read_fd, write_fd = os.pipe()
    os.set_blocking(read_fd, False)
    os.set_blocking(write_fd, False)  # a supervisor that is frozen must not hold up its crawler
    return PulseReader(read_fd), write_fd


class PulseReader:
    """Lines from a crawler: first a `workers.process.handshake.Terms` line, then `CrawlerRecord`s."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._unread = b""
        self._ended = False

    def read(self) -> list[bytes]:
        """Return the complete lines since the last call."""
        try:
            while data := os.read(self._fd, 65_536):
                self._unread += data
            self._ended = True
        except BlockingIOError:
            pass
        *lines, self._unread = self._unread.split(b"\n")
        return lines

    def wait(self, seconds: float, wake: Wake) -> None:
        """Wait at most so long; less when there is something to read, when the other end is closed, or when woken."""
        if self._ended:
            wake.wait(min(seconds, DYING_S))
        else:
            wake.wait(seconds, self._fd)

    def close(self) -> None:
        os.close(self._fd)
