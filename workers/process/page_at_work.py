"""The page that a crawler process is reading now, for the supervisor of a process that hangs or has died.

It is written to memory that the supervisor shares, since a process that hangs in C code, or is dead, cannot answer. Writing it
takes some microseconds a page.
"""

from __future__ import annotations

import mmap
import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import msgspec

from .memory import private_memory

_SIZE = 4096
_LONGEST = 1000  # characters of a URL that are kept


class PageAtWork(msgspec.Struct, frozen=True, kw_only=True):
    """A page that is being read."""

    url: str
    site: str
    kind: str = ""
    since: float = msgspec.field(default_factory=time.monotonic)  # of this machine

    @property
    def lasted_s(self) -> float:
        """Seconds that it has been at work."""
        return time.monotonic() - self.since

    def __str__(self) -> str:
        """Format as in `hung while reading http://… of site books`."""
        return f"reading {self.url} of site {self.site}"


reading: Callable[[PageAtWork], AbstractContextManager[None]] = nullcontext  # type: ignore[assignment]  # it yields the page
"""Marks a page as being read within a block, once a supervisor shares its memory. The reactor reads one page at a time: nothing
is awaited within.
"""


def share(descriptor: int) -> None:
    """Write each page that is read from now on to the memory of this descriptor. Raises OSError."""
    global reading
    shared = mmap.mmap(descriptor, _SIZE)

    @contextmanager
    def marked(page: PageAtWork) -> Iterator[None]:
        encoded = msgspec.json.encode(msgspec.structs.replace(page, url=page.url[:_LONGEST]))
        if len(encoded) < _SIZE - 2:
            shared[2 : 2 + len(encoded)] = encoded
            shared[:2] = len(encoded).to_bytes(2, "big")
        try:
            yield
        finally:
            shared[:2] = b"\0\0"

    reading = marked


class SharedPage:
    """The supervisor's end of the memory; `descriptor` is for its crawler."""

    def __init__(self) -> None:
        self.descriptor = private_memory("trawl-page-at-work")
        os.ftruncate(self.descriptor, _SIZE)
        self._map = mmap.mmap(self.descriptor, _SIZE)

    def read(self) -> PageAtWork | None:
        """Return the page that is being read, or was read last."""
        size = int.from_bytes(self._map[:2], "big")
        try:
            return msgspec.json.decode(self._map[2 : 2 + size], type=PageAtWork) if size else None
        except ValueError:
            return None

    def close(self) -> None:
        """Release the memory, after the last read."""
        self._map.close()
        os.close(self.descriptor)
