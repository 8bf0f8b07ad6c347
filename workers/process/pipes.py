"""Pipes, waits and signals between a crawler and its supervisor: a wait that ends early, or notices that the whole process was
frozen; the end of a crawler whose supervisor has died.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import sys
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from types import FrameType

import msgspec

from .exit_kinds import SHUTDOWN_GRACE_S, ExitKind, kind_of_label

FROZEN_S = 1.0  # if our own loop was late by more than this, we were frozen; do not blame the child


def sleep(seconds: float, wait: Callable[[float], object] = time.sleep) -> float:
    """Sleep by `wait`, which may end early; returns for how many more seconds this process was frozen, 0.0 if it was not."""
    began = time.monotonic()
    wait(seconds)
    late_s = time.monotonic() - began - seconds
    return late_s if late_s > FROZEN_S else 0.0


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


_MARK = b"terms "
_END = b"end "
_RESTS = b"rests"


@dataclass(frozen=True, kw_only=True)
class HandshakeLimits:
    """Limits of a crawler process; the defaults hold until the crawler has sent its own."""

    grace_s: float = SHUTDOWN_GRACE_S  # for its pages in flight at a shutdown
    memory_hard_bytes: int = 0  # resident memory with which it has to be ended; 0: any

    def to_line(self) -> bytes:
        return _MARK + msgspec.json.encode(asdict(self))

    @classmethod
    def from_line(cls, line: bytes) -> HandshakeLimits | None:
        """Parse a line; None for a line of another kind. Raises ValueError for terms that cannot be read."""
        return msgspec.json.decode(line.removeprefix(_MARK), type=cls) if line.startswith(_MARK) else None


def announce(fd: int | None, kind: ExitKind) -> None:
    """Report how this process ends, right before it exits; its exit code alone could be the spider's own."""
    if fd is not None:
        with suppress(OSError):  # the reader is gone
            os.write(fd, _END + kind.label.encode() + b"\n")


def announced_in(line: bytes) -> ExitKind | None:
    """Return the end that a line announces; None for a line of another kind."""
    return kind_of_label(line.removeprefix(_END).decode(errors="replace")) if line.startswith(_END) else None


def announce_rest(fd: int) -> None:
    """Report that this process has come to the end of its crawl and may be given another one."""
    os.write(fd, _RESTS + b"\n")


def is_rest(line: bytes) -> bool:
    """Return True for a line of `announce_rest`."""
    return line == _RESTS


DYING_S = 0.02  # the pipe of a process that ends is closed shortly before it can be waited for


def pulse_pipe() -> tuple[PulseReader, int]:
    """Return the end to read from, and the descriptor for the crawler (`--pulse-fd`); neither side ever waits for the other."""
    read_fd, write_fd = os.pipe()
    os.set_blocking(read_fd, False)
    os.set_blocking(write_fd, False)  # a supervisor that is frozen must not hold up its crawler
    return PulseReader(read_fd), write_fd


class PulseReader:
    """Lines from a crawler: first a `workers.process.pipes.Terms` line, then `CrawlerRecord`s."""

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
