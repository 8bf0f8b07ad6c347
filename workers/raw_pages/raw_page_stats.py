"""Raw pages of one crawl, with their counts in its stats."""

from __future__ import annotations

from collections.abc import Callable

from .store import RawStore, raw_dir
from .warc_record import RawPage


class RawPageStats:
    """A RawStore in the folder of this node. The stats belong to the reactor thread, so the counts are updated at the next
    page.
    """

    def __init__(self, inc_value: Callable[[str, int], object], *, rounds: Callable[[], object]) -> None:
        self._inc_value = inc_value
        self._raw = RawStore(raw_dir(), rounds=rounds)
        self._counted = (0, 0, 0)

    def keep(self, page: RawPage) -> None:
        """Queue the page for writing, and update the stats."""
        self._raw.keep(page)
        self._count()

    def close(self) -> None:
        """Write the queued pages, and update the stats."""
        self._raw.close()
        self._count()

    def _count(self) -> None:
        now = (self._raw.kept, self._raw.kept_bytes, self._raw.dropped)
        for name, value, counted in zip(("kept", "bytes", "dropped"), now, self._counted, strict=True):
            if value > counted:
                self._inc_value(f"raw/{name}", value - counted)
        self._counted = now
