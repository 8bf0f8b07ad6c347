"""The writes of the last seconds, to be sent again when Redis comes back with an older state."""

from __future__ import annotations

from collections import deque

from .outbox import Batch


class Journal:
    """The batches of the exchanges answered within `keep_s` seconds."""

    def __init__(self, keep_s: float) -> None:
        self._keep_s = keep_s
        self._entries: deque[tuple[float, int, Batch]] = deque()

    def remember(self, now: float, number: int, batch: Batch) -> None:
        """Keep the writes of exchange `number`, answered at `now`; older ones than `keep_s` are forgotten."""
        if batch.writes:
            self._entries.append((now, number, batch))
        while self._entries and self._entries[0][0] < now - self._keep_s:
            self._entries.popleft()

    def replay(self, known: int, now: float, number: int, batch: Batch) -> list[Batch]:
        """Remove and return, however old (Redis may have been away for long), what a Redis lacks that knows all exchanges up to
        `known`; `batch` is that of exchange `number`, just refused at `now`. The rest is kept: Redis may come back older yet.
        """
        self._entries.append((now, number, batch))
        lacking = [one for _, of, one in self._entries if of > known and one.writes]
        self._entries = deque(entry for entry in self._entries if entry[1] <= known and entry[2].writes)
        return lacking

    def __bool__(self) -> bool:
        return bool(self._entries)
