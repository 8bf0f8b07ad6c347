"""What happens in the demo, in order. A generator: it yields whenever the audience may look, and never sleeps."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Generator, Iterator
from datetime import UTC, datetime
from typing import TypeVar

from sqlalchemy import func, select

from redis_components.errors import TrawlError
from redis_components.inspector import CrawlSnapshot
from redis_components.registry import CrawlerRecord, CrawlerState
from workers.sites import load_site
from workers.storage import scans

from .scene import Scene
from .stage import BOARDS, SITE
from .truth import Coverage, compare

START_TIMEOUT_S = 60.0
CRAWL_TIMEOUT_S = 90.0
RECOVERY_TIMEOUT_S = 45.0
SETTLE_TIMEOUT_S = 120.0
QUIET_LOOKS = 3  # the figures of one look are not of one instant; nothing may have moved over so many

T = TypeVar("T")
Act = Generator[None, None, T]


class DemoFailed(TrawlError):
    """Something did not happen in time; the message says what was waited for."""


class Story:
    """The demo's acts. What is measured on the way is for the report."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.stage = scene.stage
        self.crawling_since_s = 0.0
        self.killed: CrawlerRecord | None = None
        self.killed_at_s = 0.0
        self.recovered_after_s: float | None = None
        self.frozen_at: datetime | None = None
        self.settled_at_s = 0.0
        self.coverage: tuple[Coverage, Coverage] | None = None

    def acts(self) -> Iterator[None]:
        """Everything, from an empty folder to the comparison. Raises TrawlError."""
        yield from self._start()
        yield from self._crawl()
        yield from self._kill()
        yield from self._freeze()
        yield from self._settle()
        self._compare()
        yield

    def _start(self) -> Act[None]:
        scene, stage = self.scene, self.stage
        for doing, step in (
            ("Starting a Redis of its own.", stage.start_redis),
            ("Making an empty database.", stage.open_database),
            ("Growing a forum and starting its web server.", stage.start_forum),
            ("Starting a Celery worker, beat, Flower and the exporter.", stage.start_services),
        ):
            scene.now = doing
            yield
            step()
        scene.count()
        assert scene.forum
        scene.happened(f"Redis, a forum with {scene.forum.pieces:,} posts and comments, and four services are started")
        stage.seed()
        scene.happened(f"{BOARDS} boards are seeded: as tasks they wait in Redis for a crawler")
        scene.now = "Beat finds that two crawlers are missing; the worker launches them as processes of their own."
        yield from self._until(self._whole, "for the crawlers to start", START_TIMEOUT_S)
        scene.happened("both crawlers run")

    def _crawl(self) -> Act[None]:
        scene, options = self.scene, self.stage.options
        self.crawling_since_s = scene.clock_s
        self.stage.forum.control(rate=options.rate)
        scene.living = True
        scene.happened(f"the forum lives: {options.rate:g} new threads and replies a second")
        scene.now = "forum_list scans the boards; each new or changed thread becomes a task for forum_detail."
        yield from self._until(
            lambda: scene.stored_share >= options.kill_at,
            f"for {options.kill_at:.0%} of the forum to be stored",
            CRAWL_TIMEOUT_S,
        )

    def _kill(self) -> Act[None]:
        scene = self.scene
        victim = yield from self._until(self._victim, "for a forum_detail crawler at work", START_TIMEOUT_S)
        leased = self._detail().leased + self._detail().leased_tasks
        os.kill(victim.pid, signal.SIGKILL)
        self.killed, self.killed_at_s = victim, scene.clock_s
        scene.happened(f"SIGKILL to {victim.name} (pid {victim.pid}), which had {leased} requests and tasks in its hands")
        scene.now = f"{victim.name} was killed: its supervisor starts another, which gets the requests it left."
        acked = self._detail().acked

        def successor() -> CrawlerRecord | None:
            """The new crawler, as soon as it has finished a request."""
            nonlocal acked
            new = self._crawler(victim.name)
            if new is None or new.pid in (0, victim.pid):
                acked = self._detail().acked  # the last of the one that was killed
                return None
            return new if self._detail().acked > acked else None

        new = yield from self._until(successor, f"for {victim.name} to crawl again", RECOVERY_TIMEOUT_S)
        self.recovered_after_s = scene.clock_s - self.killed_at_s
        scene.happened(f"{victim.name} crawls again (pid {new.pid}), {self.recovered_after_s:.1f} s after the kill")

    def _freeze(self) -> Act[None]:
        scene, options = self.scene, self.stage.options
        scene.now = "Crawling on; the forum lives on, and threads that change are fetched again."
        yield from self._until(
            lambda: scene.clock_s - self.crawling_since_s >= options.live_s, "for the forum to have lived", options.live_s + 1
        )
        self.stage.forum.control(rate=0)
        scene.living = False
        self.frozen_at = datetime.now(UTC)
        self.stage.seed()  # beat would; this saves its seconds
        scene.count()
        assert scene.forum
        scene.happened(f"the forum stands still now, with {scene.forum.pieces:,} posts and comments")

    def _settle(self) -> Act[None]:
        scene = self.scene
        scene.now = "Waiting for one more scan of every board, and until nothing waits any more."
        yield from self._until(self._scanned, "for a complete scan of each board after the last change", SETTLE_TIMEOUT_S)
        scene.happened("every board was scanned once more")
        quiet, acked = 0, -1

        def settled() -> bool:
            nonlocal quiet, acked
            quiet = quiet + 1 if self._idle() and self._detail().acked == acked else 0
            acked = self._detail().acked
            return quiet >= QUIET_LOOKS

        yield from self._until(settled, "for the queues to become empty", SETTLE_TIMEOUT_S)
        self.settled_at_s = scene.clock_s
        scene.happened("nothing waits, nothing is being worked on, everything is stored")

    def _compare(self) -> None:
        scene = self.scene
        scene.now = "Comparing the database with the forum's own list, row by row."
        scene.count()
        assert self.stage.database
        self.coverage = compare(self.stage.database, self.stage.forum.truth(), SITE)

    # what the acts wait for

    def _until(self, done: Callable[[], T | None], what: str, timeout_s: float) -> Act[T]:
        deadline = time.monotonic() + timeout_s
        while True:
            yield  # the audience looks, and so the figures are fresh
            if found := done():
                return found
            if time.monotonic() > deadline:
                raise DemoFailed(f"waited {timeout_s:.0f} s in vain {what}: see the logs in {self.stage.place.shown}/logs")

    def _whole(self) -> bool:
        fleet = self.scene.fleet
        if fleet is None:
            return False
        return all(
            sum(c.state is CrawlerState.RUNNING for c in fleet.crawlers if c.spider == one.name and c.alive(fleet.now))
            >= one.desired
            for one in fleet.services
        )

    def _victim(self) -> CrawlerRecord | None:
        fleet = self.scene.fleet
        assert fleet
        at_work = [c for c in fleet.crawlers if c.spider == "forum_detail" and c.alive(fleet.now) and c.pid]
        return at_work[0] if at_work and self._detail().leased else None

    def _crawler(self, name: str) -> CrawlerRecord | None:
        assert self.scene.fleet
        return next((c for c in self.scene.fleet.crawlers if c.name == name), None)

    def _detail(self) -> CrawlSnapshot:
        assert self.scene.fleet
        return self.scene.fleet.service("forum_detail").crawl

    def _idle(self) -> bool:
        assert self.scene.fleet
        return self.scene.fleet.service("forum_detail").idle

    def _scanned(self) -> bool:
        """Whether each board has been scanned to its end by a scan that began after the forum's last change."""
        assert self.frozen_at
        assert self.stage.database
        query = select(func.count(func.distinct(scans.c.forum_id))).where(
            scans.c.site == SITE, scans.c.started_at > self.frozen_at, scans.c.outcome == "complete"
        )
        (scanned,) = next(self.stage.database.stream(query))
        return bool(scanned >= len(load_site(SITE).forums))
