"""Reads any page within limits: in this process if it is like pages of forums, else in a child process.

Nothing interrupts libxml2 in the middle of a page, or an XPath in the middle of a tree. So a page that may take long
(`reading_budget`) is read by `python -m forums.sites.isolated_child`, which the kernel ends after `cpu_s()` of processor
time, or at `MEMORY_BYTES`. Each process that needs one keeps one child (0.6 s to start it), which reads one page at a time.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import select
import subprocess
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

from forum_reader.errors import PageGone, UnreadablePage
from forum_reader.reading import asked_page as reading
from forum_reader.reading.asked_page import PAGES, AnyPage, Asked
from forum_reader.reading.reading_budget import TooMuchHere, strictly
from forums.environment import Reading
from workers.process.run_module import own_module
from workers.supervision.launcher import waited_s

if TYPE_CHECKING:
    from scrapy.http import Response

    from forum_reader.definition.site import Site

MEMORY_BYTES = 1 << 30
WAIT_S = 60.0
"""Wall-clock time without an answer, less the time that the child waited for a CPU: it has a low priority."""
_HEAD = 4  # bytes of a message's length


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """A page to be read. The child reads the site's file by its name."""

    site: str
    asked: Asked
    url: str
    headers: list[tuple[bytes, bytes]]
    body: bytes


class ChildReply(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a task: the encoded page, or the reason why it could not be read."""

    page: bytes = b""
    unreadable: str | None = None
    gone: bool = False


def read(site: Site, response: Response, asked: Asked) -> AnyPage:
    """Read the page and wait for it. Raises UnreadablePage, also for a page that exceeds its limits."""
    try:
        return here(site, response, asked)
    except TooMuchHere:
        return _reader().read(site, response, asked)


def here(site: Site, response: Response, asked: Asked) -> AnyPage:
    """Read the page in this process. Raises TooMuchHere where a child process is needed."""
    with strictly():
        return reading.read(site, response, asked)


async def read_soon(site: Site, response: Response, asked: Asked) -> AnyPage:
    """Read the page without blocking the asyncio loop. Raises UnreadablePage."""
    try:
        return here(site, response, asked)
    except TooMuchHere:
        return await apart(site, response, asked)


async def apart(site: Site, response: Response, asked: Asked) -> AnyPage:
    """Read the page in the child process, one after the other. Raises UnreadablePage."""
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(_in_turn(), _reader().read, site, response, asked)


def cpu_s() -> int:
    """Return the seconds of processor time for a page in the child process. Raises ConfigError."""
    return Reading.read().parse_timeout_s


@lru_cache(maxsize=1)
def _reader() -> Reader:
    reader = Reader()
    atexit.register(reader.close)
    return reader


@lru_cache(maxsize=1)
def _in_turn() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="reading apart")


class Reader:
    """Client of a child process that reads pages; the child is started for the first, and again after one that ended it. For any
    thread.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._pid = 0  # of the process that started the child: a pool child must not share its parent's

    def read(self, site: Site, response: Response, asked: Asked) -> AnyPage:
        """Read the page in the child. Raises UnreadablePage."""
        headers = [(name, value) for name, values in response.headers.items() for value in values]
        task = Task(site=site.name, asked=asked, url=response.url, headers=headers, body=response.body)
        with self._lock:
            reply = self._ask(msgspec.msgpack.encode(task))
        if reply.gone:
            raise PageGone(reply.unreadable or "")
        if reply.unreadable is not None:
            raise UnreadablePage(reply.unreadable)
        return msgspec.msgpack.decode(reply.page, type=PAGES[asked.kind])

    def close(self) -> None:
        """End the child process."""
        if self._process is not None and self._pid == os.getpid():
            self._process.kill()
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe:
                    pipe.close()
        self._process = None

    def _ask(self, message: bytes) -> ChildReply:
        if self._process is None or self._pid != os.getpid() or self._process.poll() is not None:
            self.close()
            self._process, self._pid = _start(), os.getpid()
        try:
            return msgspec.msgpack.decode(_exchange(self._process, message), type=ChildReply)
        except (OSError, EOFError, msgspec.DecodeError, TimeoutError) as error:
            most = f"{WAIT_S:.0f} s" if isinstance(error, TimeoutError) else f"{cpu_s()} s of processor time, or 1 GiB of memory,"
            self.close()
            return ChildReply(unreadable=f"takes more than {most} to be read in a process apart")


def _start() -> subprocess.Popen[bytes]:
    command = own_module("forums.sites.isolated_child")
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def _exchange(process: subprocess.Popen[bytes], message: bytes) -> bytes:
    """Return the answer to a message. Raises OSError, EOFError where the process ended, TimeoutError."""
    begun_at, begun_waited_s = time.monotonic(), waited_s(process.pid)

    def left_s() -> float:
        return WAIT_S + waited_s(process.pid) - begun_waited_s - (time.monotonic() - begun_at)

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
