"""`read_page` within limits of processor time and memory, for pages of unknown origin. A signal interrupts deeply nested posts;
nothing interrupts libxml2, which needs hours for a page of a single tag with a million attributes, so such a page is read by a
child process (`forum_reader/jail.py`).
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from forum_reader.errors import PageTooLarge, ReaderError
from forum_reader.jail import Jail, allow, serve
from forum_reader.page.records import SeenPage
from forum_reader.reading.markup_limits import extraordinary

from .page_reader import read_page

MOST_S = 10
"""Seconds of processor time; a thread of 3,000 posts on one page needs 2."""
_MEMORY_BYTES = 2 << 30
_WAIT_S = 600.0  # on a machine that has no processor time for it


class _Task(msgspec.Struct, frozen=True, kw_only=True):
    html: str
    url: str
    links: bool
    seconds: int


class _Reply(msgspec.Struct, frozen=True, kw_only=True):
    page: SeenPage | None = None
    error: str | None = None


def read_limited(html: str, url: str, *, links: bool = True, seconds: int = MOST_S) -> SeenPage:
    """Read a page like `read_page`. Raises PageTooLarge where it takes too long. Only for the main thread."""
    if extraordinary(html) is None:
        with _interrupted_after(seconds, url):
            return read_page(html, url, links=links)
    whole = html.encode("utf-8", "replace").decode("utf-8")  # half a surrogate pair has no encoding
    task = msgspec.msgpack.encode(_Task(html=whole, url=url, links=links, seconds=seconds))
    jail = Jail([sys.executable, "-P", "-m", __name__])
    try:
        reply = msgspec.msgpack.decode(jail.ask(task, wait_s=_WAIT_S), type=_Reply)
    except (OSError, EOFError):
        raise PageTooLarge(f"{url}: takes more than {seconds} s of processor time, or 2 GiB of memory, to be read") from None
    finally:
        jail.close()
    if reply.page is None:
        raise ReaderError(reply.error or url)
    return reply.page


@contextmanager
def _interrupted_after(seconds: int, url: str) -> Iterator[None]:
    """Raise PageTooLarge in the body once `seconds` of processor time are spent, and each second after, in case it was caught."""

    def interrupt(*_: Any) -> None:
        raise PageTooLarge(f"{url}: takes more than {seconds} s of processor time to be read")

    before = signal.signal(signal.SIGPROF, interrupt)
    signal.setitimer(signal.ITIMER_PROF, seconds, 1)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _answer(message: bytes) -> bytes:
    task = msgspec.msgpack.decode(message, type=_Task)
    allow(task.seconds)
    try:
        reply = _Reply(page=read_page(task.html, task.url, links=task.links))
    except ReaderError as exc:
        reply = _Reply(error=str(exc))
    return msgspec.msgpack.encode(reply)


if __name__ == "__main__":
    serve(_answer, _MEMORY_BYTES)
