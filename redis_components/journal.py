"""What was written in the last seconds, to be written again when Redis comes back with an older state."""

from __future__ import annotations

from collections import deque

from .outbox import Batch


class Journal:
    """The batches of the exchanges answered within `keep_s` seconds."""

    def __init__(self, keep_s: float) -> None:
        self._keep_s = keep_s
        self._entries: deque[tuple[float, int, Batch]] = deque()

    def remember(self, now: float, number: int, batch: Batch) -> None:
        """Exchange `number` was answered at `now`; what is older than `keep_s` is forgotten."""
        if batch.writes:
            self._entries.append((now, number, batch))
        while self._entries and self._entries[0][0] < now - self._keep_s:
            self._entries.popleft()

    def replay(self, last_applied: int, number: int, batch: Batch) -> list[Batch]:
        """Remove everything, however old: Redis may have been away for long. Returns what it lacks, which knows all exchanges
        up to `last_applied`; `batch` is that of exchange `number`, just refused.
        """
        lacking = [one for _, of, one in (*self._entries, (0.0, number, batch)) if of > last_applied and one.writes]
        self._entries.clear()
        return lacking
