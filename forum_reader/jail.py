"""A child process for work that nothing interrupts: a message in, an answer out, each within limits of processor time and memory.

libxml2 needs hours for a page of a single tag with a million attributes, and an XPath in the middle of a tree listens to no
signal. So the work is done by a module that calls `serve`, which the kernel ends at its limits. Frames on both pipes: four bytes
of length, then content.
"""

from __future__ import annotations

import os
import resource
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence

NICE = 10
"""The child gets the processor time that others leave."""
_HEAD = 4  # bytes of a message's length


class Jail:
    """Client of a child process. The child is started for the first message (0.6 s), and again after one that ended it. For any
    thread. `waited_s`: the time in which a process waited for a CPU, which does not count.
    """

    def __init__(self, command: Sequence[str], waited_s: Callable[[int], float] = lambda _: 0.0) -> None:
        self._command = command
        self._waited_s = waited_s
        self._lock = threading.Lock()
        self.process: subprocess.Popen[bytes] | None = None
        self._pid = 0  # of the process that started the child: a pool child must not share its parent's

    def ask(self, message: bytes, wait_s: float) -> bytes:
        """Return the answer. Raises EOFError or OSError where the child was ended, TimeoutError; the child is then gone."""
        with self._lock:
            if self.process is None or self._pid != os.getpid() or self.process.poll() is not None:
                self.close()
                self.process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
                self._pid = os.getpid()
            try:
                return self._exchange(self.process, message, wait_s)
            except (OSError, EOFError):
                self.close()
                raise

    def close(self) -> None:
        """End the child process."""
        if self.process is not None and self._pid == os.getpid():
            self.process.kill()
            self.process.wait()
            for pipe in (self.process.stdin, self.process.stdout):
                if pipe:
                    pipe.close()
        self.process = None

    def _exchange(self, process: subprocess.Popen[bytes], message: bytes, wait_s: float) -> bytes:
        begun_at, begun_waited_s = time.monotonic(), self._waited_s(process.pid)

        def left_s() -> float:
            return wait_s + self._waited_s(process.pid) - begun_waited_s - (time.monotonic() - begun_at)

        assert process.stdin
        assert process.stdout
        process.stdin.write(len(message).to_bytes(_HEAD, "big") + message)
        process.stdin.flush()
        head = _some(process.stdout.fileno(), _HEAD, left_s)
        return _some(process.stdout.fileno(), int.from_bytes(head, "big"), left_s)


def _some(descriptor: int, size: int, left_s: Callable[[], float]) -> bytes:
    got, ready = bytearray(), select.poll()  # not select(): it takes no descriptor over 1,023
    ready.register(descriptor, select.POLLIN)
    while len(got) < size:
        while not ready.poll(max(0.0, wait_s := left_s()) * 1000):
            if wait_s <= 0:
                raise TimeoutError
        if not (part := os.read(descriptor, min(1 << 20, size - len(got)))):
            raise EOFError
        got += part
    return bytes(got)


def serve(answer: Callable[[bytes], bytes], memory_bytes: int) -> None:
    """Answer messages from standard input until it ends. `answer` calls `allow` before it begins."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # sent to a whole process group: the parent may have pages to finish
    resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))
    os.nice(NICE)
    while head := sys.stdin.buffer.read(_HEAD):
        reply = answer(sys.stdin.buffer.read(int.from_bytes(head, "big")))
        sys.stdout.buffer.write(len(reply).to_bytes(_HEAD, "big") + reply)
        sys.stdout.buffer.flush()


def allow(seconds: int) -> None:
    """Allow `seconds` of processor time from now on; then the kernel ends this process (SIGXCPU)."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (int(used.ru_utime + used.ru_stime) + 1 + seconds, most))
