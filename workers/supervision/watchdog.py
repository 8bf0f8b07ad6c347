"""Watches a crawler from outside, for what it cannot notice: that it hangs, or grows faster than it checks its memory."""

from __future__ import annotations

import time

from workers.process import freeze_detection
from workers.process.exit_kinds import ExitKind
from workers.process.pipes import Wake

from .launcher import LaunchedCrawler

TICK_S = 0.25  # between checks of a crawler; its reports, its end and orders of the fleet are noticed at once
WEIGH_S = 1.0  # how often its memory and its CPU time are read
PROGRESS_CPU_S = 0.5  # a start that uses less than this in `start_s` waits for an event that does not happen


class StartProgress:
    """Decides if a crawler without a report still starts. Pure.

    A busy machine makes a start long, and killing starting processes makes it busier: CPU time counts, not the wall clock. A
    start takes 2 s of it. It hangs when it gets none for `limit_s`, or has used more than `limit_s` of it.
    """

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._cpu_s = self._at_s = 0.0

    def hangs(self, *, silent_s: float, cpu_s: float) -> bool:
        """Return True if the start hangs. `silent_s` since its launch; `cpu_s` that it has used since then."""
        if cpu_s - self._cpu_s >= PROGRESS_CPU_S:
            self._cpu_s, self._at_s = cpu_s, silent_s
        return silent_s - self._at_s > self._limit_s or cpu_s > self._limit_s


class Watch:
    """Watches one crawler. Silence for `silence_s` is trouble; before its first report `StartProgress` decides.

    Time that it waited for a CPU does not count: on a machine with forty busy processes a turn takes seconds.
    """

    def __init__(self, crawler: LaunchedCrawler, *, silence_s: float, start_s: float) -> None:
        self._crawler = crawler
        self._silence_s = silence_s
        self._start = StartProgress(start_s)
        self._weigh_at = 0.0

    def trouble(self) -> tuple[ExitKind, str] | None:
        """Return the kind of end for a crawler that has to be killed, and a sentence for the log."""
        crawler = self._crawler
        look = time.monotonic() >= self._weigh_at
        if look:
            self._weigh_at = time.monotonic() + WEIGH_S
        if crawler.record:
            silent = crawler.silent_s > self._silence_s and crawler.silent_s - crawler.starved_s() > self._silence_s
        else:
            silent = look and self._start.hangs(silent_s=crawler.silent_s, cpu_s=crawler.cpu_s())
        # Memory is checked before a silent crawler counts as hung: its growth may be the cause of the silence.
        most = crawler.terms.memory_hard_bytes
        if most and (silent or look) and (resident := crawler.resident()) > most:
            return ExitKind.OUT_OF_MEMORY, f"it had {resident >> 20} MiB of memory"
        if silent:
            return ExitKind.HUNG, f"no report for {crawler.silent_s:.0f} s"
        return None

    def tick(self, wake: Wake) -> None:
        """Wait until the next look."""
        self._crawler.excuse(freeze_detection.sleep(TICK_S, lambda seconds: self._crawler.wait(seconds, wake)))
