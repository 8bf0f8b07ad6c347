"""Reads any page within limits: in this process if it is like pages of forums, else in a child process.

Nothing interrupts libxml2 in the middle of a page, or an XPath in the middle of a tree. So a page that may take long
(`parse_body`) is read by `python -m forums.sites.isolated`, which the kernel ends after `cpu_s()` of processor
time, or at `MEMORY_BYTES`. Each process that needs one keeps one child (0.6 s to start it), which reads one page at a time.
"""

from __future__ import annotations

import asyncio
import atexit
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec
from scrapy.http import Headers, Response
from scrapy.responsetypes import responsetypes

from forum_reader.errors import PageGone, SiteError, UnreadablePage
from forum_reader.jail import Jail, allow, serve
from forum_reader.reading import read_page as reading
from forum_reader.reading.page_records import PAGES, AnyPage, Asked
from forum_reader.reading.parse_body import TooMuchHere, strictly
from forums.environment import Reading
from redis_components.server.printable import in_words
from workers.process.run_module import own_module
from workers.supervision.launcher import waited_s

from .load import site_in_use

if TYPE_CHECKING:
    from forum_reader.definition.site import Site


MEMORY_BYTES = 1 << 30
WAIT_S = 60.0
"""Wall-clock time without an answer, less the time that the child waited for a CPU: it has a low priority."""


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
    """Client of the child process that reads pages. For any thread."""

    def __init__(self) -> None:
        self.jail = Jail(own_module("forums.sites.isolated"), lambda pid: waited_s(pid))
        self.close = self.jail.close

    def read(self, site: Site, response: Response, asked: Asked) -> AnyPage:
        """Read the page in the child. Raises UnreadablePage."""
        headers = [(name, value) for name, values in response.headers.items() for value in values]
        task = Task(site=site.name, asked=asked, url=response.url, headers=headers, body=response.body)
        reply = self._ask(msgspec.msgpack.encode(task))
        if reply.gone:
            raise PageGone(reply.unreadable or "")
        if reply.unreadable is not None:
            raise UnreadablePage(reply.unreadable)
        return msgspec.msgpack.decode(reply.page, type=PAGES[asked.kind])

    def _ask(self, message: bytes) -> ChildReply:
        try:
            return msgspec.msgpack.decode(self.jail.ask(message, WAIT_S), type=ChildReply)
        except (OSError, EOFError, msgspec.DecodeError) as error:
            self.close()
            most = f"{WAIT_S:.0f} s" if isinstance(error, TimeoutError) else f"{cpu_s()} s of processor time, or 1 GiB of memory,"
            return ChildReply(unreadable=f"takes more than {most} to be read in a process apart")


def answer(message: bytes) -> bytes:
    """Return the answer to one task."""
    allow(cpu_s())
    return msgspec.msgpack.encode(reply_to(msgspec.msgpack.decode(message, type=Task)))


def reply_to(task: Task) -> ChildReply:
    """Read the page, or return the reason why it cannot be read."""
    headers = Headers()
    for name, value in task.headers:
        headers.appendlist(name, value)
    kind = responsetypes.from_args(headers=headers, url=task.url, body=task.body)
    response = kind(task.url, headers=headers, body=task.body)
    try:
        return ChildReply(page=msgspec.msgpack.encode(reading.read(site_in_use(task.site), response, task.asked)))
    except UnreadablePage as error:
        return ChildReply(unreadable=error.reason, gone=isinstance(error, PageGone))
    except (SiteError, MemoryError, RecursionError) as error:
        return ChildReply(unreadable=in_words(error))


if __name__ == "__main__":
    serve(answer, MEMORY_BYTES)
