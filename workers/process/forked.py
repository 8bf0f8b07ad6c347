"""Crawlers that are forked from a warm parent, `workers.crawler.warm_parent`: a process that has imported what they import.

There is one for each environment, folder and interpreter on a node. It begins with the first launch, is asked through a socket
that only this user's processes may use, and ends with the process that `owned_by` names. Where none can be had, a crawler is
executed.

A request is `CrawlerOptions` as JSON, in memory whose descriptor is sent, with those of the log, the pulse, the page and a socket
on which a crawler that has finished is given its next crawl (`workers.crawler.turns`). The answers are two numbers: the pid (0:
another parent is needed), and at the end the exit code, negative for a signal.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

from redis_components.embedded.child_process import ChildProcess, ProcessGroup
from workers.environment.variables import Fleet
from workers.process.options import CrawlerOptions, handed_over
from workers.process.run_module import own_module

ANSWER = struct.Struct("!i")
CREDENTIALS = struct.Struct("3i")
STARTED_WITHIN_S = 20.0
COLD_S = 60.0
"""Crawlers are executed for this time after a parent that could not be had."""
LINE_ROOM = 1_000
"""Characters of a forked crawler's command line, as `ps` shows it."""
UNKNOWN = -0x1000
"""Exit code of a crawler whose parent ended before it."""

_owner: int | None = None
"""Warm parents end with this process; None: with the one that asks."""
_started: list[ChildProcess] = []
_cold: dict[str, float] = {}


def owned_by(pid: int) -> None:
    """End warm parents with the process `pid`; to be called before a pool is forked."""
    global _owner
    _owner = pid


def is_own(connection: socket.socket) -> bool:
    """Return True if the other end belongs to this user."""
    _, user, _ = CREDENTIALS.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size))
    return bool(user == os.getuid())


class ForkedProcess(ProcessGroup):
    """A child of a warm parent, with the methods of `subprocess.Popen` that are used of a child."""

    def __init__(self, connection: socket.socket, pid: int, orders: socket.socket) -> None:
        self._connection, self.pid, self._orders = connection, pid, orders
        self._handle = os.pidfd_open(pid)  # its parent keeps it, as a zombie at least, until the connection is closed
        self.returncode: int | None = None
        connection.setblocking(False)

    def poll(self) -> int | None:
        """Return the exit code, negative for a signal; None while it runs."""
        if self.returncode is None:
            try:
                answer = self._connection.recv(ANSWER.size)
            except BlockingIOError:
                return None
            except OSError:
                answer = b""
            if answer:
                self.returncode = ANSWER.unpack(answer)[0]
                self._connection.close()
            elif select.select([self._handle], [], [], 0)[0]:
                self.returncode = UNKNOWN
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal to this process, and never to a later one with its pid."""
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._handle, number)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end. Raises subprocess.TimeoutExpired."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            if deadline is not None and time.monotonic() >= deadline:
                raise subprocess.TimeoutExpired("workers.crawler", timeout or 0.0)
            select.select([self._connection.fileno(), self._handle], [], [], 0.05)
        return code

    def order(self, options: CrawlerOptions) -> bool:
        """Give it its next crawl; False where it does not take one any more."""
        try:
            with handed_over(options) as (_, file):
                socket.send_fds(self._orders, [b"\0"], [file])
        except OSError:
            return False
        return True

    def no_more_orders(self) -> None:
        """Let it end when it has finished its crawl."""
        self._orders.close()

    def close(self) -> None:
        """Let its parent forget it."""
        self._orders.close()
        self._connection.close()
        os.close(self._handle)


def fork(options: CrawlerOptions, environment: Mapping[str, str], log_fd: int) -> ForkedProcess | None:
    """Return a new crawler; None where it has to be executed. The descriptors of `options` are this process's."""
    if sys.platform != "linux" or not Fleet.read().warm_start:
        return None
    name = _name(environment, options.python)
    if _cold.get(name, 0.0) > time.monotonic():
        return None
    ours, its = socket.socketpair()
    ours.settimeout(STARTED_WITHIN_S)
    try:
        with handed_over(options) as (_, request):
            files = [request, log_fd, *options.descriptors, its.fileno()]
            for _ in range(3):  # one that has retired a moment ago, or does so now
                if asked := _ask(name, environment, options.python, files):
                    return ForkedProcess(*asked, ours)
    except OSError:
        pass
    finally:
        its.close()
    ours.close()
    _cold[name] = time.monotonic() + COLD_S
    return None


def _ask(name: str, environment: Mapping[str, str], python: str, files: list[int]) -> tuple[socket.socket, int] | None:
    connection = _connected(name, environment, python)
    try:
        socket.send_fds(connection, [b"\0"], files)
        answer = connection.recv(ANSWER.size)
        pid = ANSWER.unpack(answer)[0] if len(answer) == ANSWER.size else 0
        if pid:
            return connection, pid
    except ConnectionError:
        pass
    except TimeoutError:
        connection.close()
        raise
    connection.close()
    return None


def _connected(name: str, environment: Mapping[str, str], python: str) -> socket.socket:
    deadline = time.monotonic() + STARTED_WITHIN_S
    while True:
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(STARTED_WITHIN_S)
        try:
            connection.connect(f"\0{name}")
            if is_own(connection):
                return connection
            raise OSError("the socket of the warm parent is another user's")
        except ConnectionRefusedError:
            connection.close()
            if time.monotonic() > deadline:
                raise
            if not _start(name, environment, python):
                time.sleep(0.01)  # another process begins one just now
        except BaseException:
            connection.close()
            raise


def _start(name: str, environment: Mapping[str, str], python: str) -> bool:
    """Start a parent, which takes what is asked from now on; False where another process was earlier."""
    _started[:] = [one for one in _started if one.poll() is None]
    with socket.socket(socket.AF_UNIX) as listener:
        try:
            listener.bind(f"\0{name}")  # of no file: gone with its last process
        except OSError:
            return False
        listener.listen(512)
        arguments = (str(listener.fileno()), str(_owner or os.getpid()), "-" * LINE_ROOM)
        _started.append(
            ChildProcess(
                own_module("workers.crawler.warm_parent", *arguments, python=python),
                pass_fds=(listener.fileno(),),
                env=dict(environment),
            )
        )
    return True


def _name(environment: Mapping[str, str], python: str) -> str:
    whole = repr((_owner or os.getpid(), str(Path.cwd()), python or sys.executable, sorted(environment.items())))
    return f"trawl-{os.getuid()}-{blake2b(whole.encode('utf-8', 'surrogateescape'), digest_size=16).hexdigest()}"
