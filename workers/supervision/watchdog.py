"""Watches a crawler from outside, for what it cannot notice: that it hangs, or grows faster than it checks its memory."""

from __future__ import annotations

import time

from workers.process import freeze_detection
from workers.process.exit_kinds import ExitKind

from .launcher import LaunchedCrawler

TICK_S = 0.1  # how often a crawler is looked at
WEIGH_S = 1.0  # how often its memory is read


class Watch:
    """Of one crawler. One that has said nothing for `silence_s` (before its first word `start_s`) is in trouble."""

    def __init__(self, crawler: LaunchedCrawler, *, silence_s: float, start_s: float) -> None:
        self._crawler = crawler
        self._silence_s = silence_s
        self._start_s = start_s
        self._weigh_at = 0.0

    def trouble(self) -> tuple[ExitKind, str] | None:
        """Why it has to be killed, and a sentence for people."""
        crawler = self._crawler
        silent = crawler.silent_s > (self._silence_s if crawler.record else self._start_s)
        # A silent one is weighed before it is called hung: what it grew by may be why it is silent.
        if crawler.terms.memory_hard_bytes and (silent or time.monotonic() >= self._weigh_at):
            self._weigh_at = time.monotonic() + WEIGH_S
            if (resident := crawler.resident()) > crawler.terms.memory_hard_bytes:
                return ExitKind.OUT_OF_MEMORY, f"it had {resident >> 20} MiB of memory"
        if silent:
            return ExitKind.HUNG, f"it said nothing for {crawler.silent_s:.0f} s"
        return None

    def tick(self) -> None:
        """Wait until the next look."""
        self._crawler.excuse(freeze_detection.sleep(TICK_S))
