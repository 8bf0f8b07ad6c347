"""The demo kills a crawler: SIGKILL while it has requests in its hands; its supervisor starts another, which crawls them."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass

from forums.state.services import FORUM_DETAIL
from redis_components.fleet.registry import CrawlerRecord

from .progress import Progress
from .waiting import START_TIMEOUT_S, Step, until

AT_WORK_S = 20.0
"""How long to wait for a crawler with requests in its hands; then one that has none is killed."""
RECOVERY_TIMEOUT_S = 90.0


@dataclass(frozen=True, kw_only=True)
class KilledCrawler:
    """The killed crawler, the time of the kill (seconds since the start), and the time until its slot crawled again."""

    crawler: CrawlerRecord
    at_s: float
    recovered_after_s: float


def kill_crawler(progress: Progress) -> Step[KilledCrawler]:
    """Kill a forum_detail crawler at work, then wait until its successor has finished a request."""
    victim = yield from _victim(progress)
    leased = progress.detail.leased + progress.detail.leased_tasks
    os.kill(victim.pid, signal.SIGKILL)
    at_s = progress.clock_s
    progress.happened(f"SIGKILL to {victim.name} (pid {victim.pid}) with {leased} requests")
    progress.doing = f"{victim.name} was killed: the next gets its requests."
    acked = progress.detail.acked

    def successor() -> CrawlerRecord | None:
        """Return the new crawler, as soon as it has finished a request."""
        nonlocal acked
        new = progress.crawler(victim.name)
        if new is None or new.pid in (0, victim.pid):
            acked = progress.detail.acked  # the last of the one that was killed
            return None
        return new if progress.detail.acked > acked else None

    new = yield from until(progress, successor, f"for {victim.name} to crawl again", RECOVERY_TIMEOUT_S)
    recovered_after_s = progress.clock_s - at_s
    progress.happened(f"{victim.name} crawls again (pid {new.pid}) after {recovered_after_s:.1f} s")
    return KilledCrawler(crawler=victim, at_s=at_s, recovered_after_s=recovered_after_s)


def _victim(progress: Progress) -> Step[CrawlerRecord]:
    patient_until = time.monotonic() + AT_WORK_S
    return until(
        progress,
        lambda: _stopped_at_work(progress) or (_alive(progress) if time.monotonic() > patient_until else None),
        "for a forum_detail crawler that is alive",
        START_TIMEOUT_S,
    )


def _stopped_at_work(progress: Progress) -> CrawlerRecord | None:
    """Return the crawler to kill, after SIGSTOP: the figures read last may be older than its present requests."""
    if (victim := _alive(progress) if progress.detail.leased else None) is not None:
        os.kill(victim.pid, signal.SIGSTOP)
        progress.read()
        if not (progress.detail.leased or progress.detail.leased_tasks):
            os.kill(victim.pid, signal.SIGCONT)
            return None
    return victim


def _alive(progress: Progress) -> CrawlerRecord | None:
    fleet = progress.fleet
    assert fleet
    return next((c for c in fleet.crawlers if c.spider == FORUM_DETAIL and c.alive(fleet.now) and c.pid), None)
