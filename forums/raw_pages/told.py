"""The raw pages of one crawl, and their counts in its stats."""

from __future__ import annotations

from collections.abc import Callable

from .folders import raw_dir
from .store import RawStore
from .warc_record import RawPage


class ToldStore:
    """A RawStore in the folder of this node. The stats are the reactor's, so what its thread counts is told at the next page."""

    def __init__(self, inc_value: Callable[[str, int], object], *, rounds: Callable[[], object]) -> None:
        self._inc_value = inc_value
        self._raw = RawStore(raw_dir(), rounds=rounds)
        self._told = (0, 0, 0)

    def keep(self, page: RawPage) -> None:
        """Write the page soon."""
        self._raw.keep(page)
        self._tell()

    def close(self) -> None:
        """Write what waits."""
        self._raw.close()
        self._tell()

    def _tell(self) -> None:
        now = (self._raw.kept, self._raw.kept_bytes, self._raw.dropped)
        for name, value, told in zip(("kept", "bytes", "dropped"), now, self._told, strict=True):
            if value > told:
                self._inc_value(f"raw/{name}", value - told)
        self._told = now
