"""The page that a crawler process is reading now, for the supervisor of a process that hangs or has died.

It is written to memory that the supervisor shares, since a process that hangs in C code, or is dead, cannot answer. Writing it
takes some microseconds a page.
"""

from __future__ import annotations

import mmap
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

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


_shared: mmap.mmap | None = None
_now: PageAtWork | None = None


@contextmanager
def reading(page: PageAtWork) -> Iterator[None]:
    """Mark `page` as being read within the block. The reactor reads one page at a time: nothing is awaited within."""
    global _now
    _now = page
    if _shared is not None:
        encoded = msgspec.json.encode(msgspec.structs.replace(page, url=page.url[:_LONGEST]))
        if len(encoded) < _SIZE - 2:
            _shared[2 : 2 + len(encoded)] = encoded
            _shared[:2] = len(encoded).to_bytes(2, "big")
    try:
        yield
    finally:
        _now = None
        if _shared is not None:
            _shared[:2] = b"\0\0"


def now() -> PageAtWork | None:
    """Return the page that this process reads; from any thread."""
    return _now


def share(descriptor: int) -> None:
    """Write the page to the memory of this descriptor, too. Raises OSError."""
    global _shared
    _shared = mmap.mmap(descriptor, _SIZE)


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


def is_site_page(meta: Mapping[str, Any]) -> bool:
    """Return True if a request with this `meta` is for a page of a site: it has the site's name and the page's kind."""
    return isinstance(meta.get("site"), str) and isinstance(meta.get("page"), dict)
