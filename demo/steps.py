"""Waiting in the demo's steps, which are generators that yield whenever the figures may be read and never sleep."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar

from forums import FORUM_DETAIL
from redis_components.errors import TrawlError
from workers.state.registry import CrawlerRecord, CrawlerState

from .compare import Coverage, compare, settling
from .processes import BOARDS, SITE
from .progress import Progress, addresses

START_TIMEOUT_S = 60.0

T = TypeVar("T")
Step = Generator[None, None, T]


class DemoFailed(TrawlError):
    """A condition was not met in time; the message names it."""


def until(progress: Progress, done: Callable[[], T | None], what: str, timeout_s: float) -> Step[T]:
    """Yield until `done` returns a true value, and return it. Raises DemoFailed after `timeout_s`."""
    deadline = time.monotonic() + timeout_s
    while True:
        yield  # the figures are read and printed here: they are fresh for `done`
        if found := done():
            return found
        if time.monotonic() > deadline:
            logs = f"{progress.processes.folder.shown}/logs"
            raise DemoFailed(f"waited {timeout_s:.0f} s in vain {what}: see the logs in {logs}")


RECOVERY_TIMEOUT_S = 90.0


@dataclass(frozen=True, kw_only=True)
class KilledCrawler:
    """The killed crawler, the time of the kill (seconds since the start), and the time until its slot crawled again."""

    crawler: CrawlerRecord
    at_s: float
    recovered_after_s: float


def kill_crawler(progress: Progress) -> Step[KilledCrawler]:
    """Kill a forum_detail crawler at work, then wait until its successor has finished a request."""
    victim = yield from until(progress, lambda: _at_work(progress), "for a forum_detail crawler at work", START_TIMEOUT_S)
    leased = progress.detail.leased + progress.detail.leased_tasks
    os.kill(victim.pid, signal.SIGKILL)
    at_s = progress.clock_s
    progress.happened(f"SIGKILL to {victim.name} (pid {victim.pid}) with {leased} requests")
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


def _at_work(progress: Progress) -> CrawlerRecord | None:
    fleet = progress.fleet
    assert fleet
    if not (progress.detail.leased or progress.detail.leased_tasks):
        return None
    return next((c for c in fleet.crawlers if c.spider == FORUM_DETAIL and c.alive(fleet.now) and c.pid), None)


CRAWL_TIMEOUT_S = 90.0
SETTLE_TIMEOUT_S = 120.0
CAUGHT_UP = 0.99  # stored share of the forum; the rest is too new


class DemoSteps:
    """Runs the steps, and holds the figures for the report."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.processes = progress.processes
        self.killed: KilledCrawler | None = None
        self.frozen_at: datetime | None = None
        self.noticed_following = 0  # edits and deletions, while the forum lived
        self.requests_following = 0
        self.coverage: tuple[Coverage, Coverage] | None = None

    def run(self) -> Iterator[None]:
        """Run everything, from an empty folder to the comparison. Raises TrawlError."""
        yield from self._start()
        yield from self._crawl()
        self.killed = yield from kill_crawler(self.progress)
        yield from self._follow()
        yield from self._settle()
        self._compare()
        yield

    def _start(self) -> Step[None]:
        progress, processes = self.progress, self.processes
        for step in (processes.start_redis, processes.open_database, processes.start_forum, processes.start_services):
            yield
            step()
        progress.count()
        progress.happened(f"Redis, a forum of {progress.pieces:,} posts, four services: started")
        for name, address in addresses(processes):
            progress.happened(f"{name} {address}")
        processes.seed()
        progress.happened(f"{BOARDS} boards are seeded: tasks for a crawler, in Redis")
        yield from until(progress, self._whole, "for the crawlers to start", START_TIMEOUT_S)
        progress.happened("both crawlers run")

    def _crawl(self) -> Step[None]:
        progress, options = self.progress, self.processes.options
        self.processes.forum.control(rate=options.demo_rate)
        progress.happened("the forum lives: people post, edit, delete and move")
        yield from until(
            progress,
            lambda: progress.stored_share >= options.demo_kill_at,
            f"for {options.demo_kill_at:.0%} of the forum to be stored",
            CRAWL_TIMEOUT_S,
        )

    def _follow(self) -> Step[None]:
        progress, options = self.progress, self.processes.options
        yield from until(progress, self._caught_up, "for the whole forum to be read once", CRAWL_TIMEOUT_S)
        progress.count()
        assert progress.forum
        began_s, first = progress.clock_s, progress.forum["total"]
        progress.happened(f"read once, with {first:,} requests; now it is followed")
        yield from until(
            progress,
            lambda: progress.clock_s - began_s >= options.demo_live_s,
            "for the forum to have lived",
            options.demo_live_s + 5,
        )
        progress.count()
        self.processes.forum.control(rate=0)
        self.frozen_at = datetime.now(UTC)
        self.requests_following = progress.forum["total"] - first
        self.noticed_following = sum(progress.noticed)
        progress.happened(f"the forum does not change any more: {progress.pieces:,} posts")

    def _settle(self) -> Step[None]:
        progress, processes = self.progress, self.processes
        assert self.frozen_at
        assert processes.database
        looks = settling(processes.database, processes.client, self.frozen_at)
        yield from until(progress, lambda: next(looks, None) is None, "for every thread to be read again", SETTLE_TIMEOUT_S)
        progress.count()
        edits, deletions = progress.noticed
        progress.happened(f"all is stored; {edits:,} edits, {deletions:,} deletions noticed")

    def _compare(self) -> None:
        progress = self.progress
        progress.count()
        assert self.processes.database
        self.coverage = compare(self.processes.database, self.processes.forum.truth(), SITE)

    # conditions of the steps

    def _whole(self) -> bool:
        fleet = self.progress.fleet
        if fleet is None:
            return False
        return all(
            sum(c.state is CrawlerState.RUNNING for c in fleet.crawlers if c.spider == one.name and c.alive(fleet.now))
            >= (one.desired or 0)
            for one in fleet.services
        )

    def _caught_up(self) -> bool:
        """Return True if only the newest pieces are unread; re-checks may wait, and do so for ever."""
        return self.progress.stored_share >= CAUGHT_UP
