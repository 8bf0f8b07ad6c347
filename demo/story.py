"""What happens in the demo, in order: who is killed, stopped, changed.

A generator: it yields whenever the audience may look, and never sleeps.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import TypeVar

from forums.state.services import FORUM_DETAIL
from redis_components.crawl_admin.inspector import CrawlSnapshot
from redis_components.errors import TrawlError
from redis_components.fleet.registry import CrawlerRecord, CrawlerState

from .followed import Followed, boards
from .scene import Scene
from .settled import scanned, unchecked
from .stage import BOARDS, SITE
from .truth import Coverage, compare

START_TIMEOUT_S = 60.0
AT_WORK_S = 20.0
"""A crawler with requests in its hands is waited for so long; then one that has none is killed."""
CRAWL_TIMEOUT_S = 90.0
RECOVERY_TIMEOUT_S = 90.0
SETTLE_TIMEOUT_S = 120.0
CHECK_ROUNDS = 5  # of the last check of everything, each of at most 1,000 threads
CAUGHT_UP = 0.99  # share of the forum that is stored; the rest has just happened
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
        self.killed: CrawlerRecord | None = None
        self.killed_at_s = 0.0
        self.recovered_after_s: float | None = None
        self.followed_since: datetime | None = None
        self.frozen_at: datetime | None = None
        self.settled_at_s = 0.0
        self.noticed_following = 0  # edits and deletions, before the last check of everything
        self.followed: Followed | None = None
        self.coverage: tuple[Coverage, Coverage] | None = None

    def acts(self) -> Iterator[None]:
        """Everything, from an empty folder to the comparison. Raises TrawlError."""
        yield from self._start()
        yield from self._crawl()
        yield from self._kill()
        yield from self._follow()
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
        self.stage.forum.control(rate=options.rate)
        scene.living = True
        scene.happened("the forum lives: people post, edit, delete and move")
        scene.now = "forum_list scans the boards; each new or changed thread becomes a task for forum_detail."
        yield from self._until(
            lambda: scene.stored_share >= options.kill_at,
            f"for {options.kill_at:.0%} of the forum to be stored",
            CRAWL_TIMEOUT_S,
        )

    def _kill(self) -> Act[None]:
        scene = self.scene
        patient_until = time.monotonic() + AT_WORK_S
        victim = yield from self._until(
            lambda: self._stopped_at_work() or (self._alive() if time.monotonic() > patient_until else None),
            "for a forum_detail crawler that is alive",
            START_TIMEOUT_S,
        )
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

    def _follow(self) -> Act[None]:
        scene, options = self.scene, self.stage.options
        scene.now = "Reading what there was from the beginning, and what is new first."
        yield from self._until(self._caught_up, "for the whole forum to be read once", CRAWL_TIMEOUT_S)
        scene.count()
        assert scene.forum
        began_s, began, first = scene.clock_s, datetime.now(UTC), scene.forum
        scene.happened(f"the forum was read once, with {first.pages:,} requests; now it is followed")
        scene.now = "Following: only lists, the last pages of threads that changed, and a check of young ones now and then."
        yield from self._until(
            lambda: scene.clock_s - began_s >= options.live_s, "for the forum to have lived", options.live_s + 5
        )
        scene.count()
        self.stage.forum.control(rate=0)
        scene.living = False
        self.followed_since, self.frozen_at = began, datetime.now(UTC)
        self.followed = Followed(
            seconds=scene.clock_s - began_s, requests=scene.forum.pages - first.pages, pages=(scene.forum.size + first.size) / 2
        )
        scene.happened(f"the forum stands still now, with {scene.forum.pieces:,} posts and comments")

    def _settle(self) -> Act[None]:
        scene = self.scene
        scene.now = "Waiting for one more scan of every board, and until nothing waits any more."
        yield from self._until(self._scanned, "for a complete scan of each board after the last change", SETTLE_TIMEOUT_S)
        scene.happened("every board was scanned once more")
        self.stage.recheck(False)  # there would always be something that is due
        yield from self._idle_for_good()
        scene.count()
        self.noticed_following = sum(scene.noticed)
        scene.now = "Reading every thread once more, which beat spreads over days: edits and deletions show in no list."
        for _ in range(CHECK_ROUNDS):
            if self._unchecked():
                self.stage.check_all()
                yield from self._idle_for_good()
        self.settled_at_s = scene.clock_s
        edits, deletions = scene.noticed
        scene.happened(f"nothing waits, everything is stored; {edits:,} edits and {deletions:,} deletions were noticed")

    def _idle_for_good(self) -> Act[None]:
        quiet, acked = 0, -1

        def settled() -> bool:
            nonlocal quiet, acked
            quiet = quiet + 1 if self._idle() and self._detail().acked == acked else 0
            acked = self._detail().acked
            return quiet >= QUIET_LOOKS

        yield from self._until(settled, "for the queues to become empty", SETTLE_TIMEOUT_S)

    def _compare(self) -> None:
        scene = self.scene
        scene.now = "Comparing the database with the forum's own list, row by row."
        scene.count()
        assert self.stage.database
        assert self.followed
        assert self.followed_since
        self.followed = replace(self.followed, boards=boards(self.stage.database, SITE, self.followed_since))
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
            >= (one.desired or 0)
            for one in fleet.services
        )

    def _alive(self) -> CrawlerRecord | None:
        fleet = self.scene.fleet
        assert fleet
        return next((c for c in fleet.crawlers if c.spider == FORUM_DETAIL and c.alive(fleet.now) and c.pid), None)

    def _stopped_at_work(self) -> CrawlerRecord | None:
        """The crawler to kill, which stands still by now: the last look may be older than all that it had in its hands then."""
        if (victim := self._alive() if self._detail().leased else None) is not None:
            os.kill(victim.pid, signal.SIGSTOP)
            self.scene.look()
            if not (self._detail().leased or self._detail().leased_tasks):
                os.kill(victim.pid, signal.SIGCONT)
                return None
        return victim

    def _crawler(self, name: str) -> CrawlerRecord | None:
        assert self.scene.fleet
        return next((c for c in self.scene.fleet.crawlers if c.name == name), None)

    def _detail(self) -> CrawlSnapshot:
        assert self.scene.fleet
        return self.scene.fleet.service(FORUM_DETAIL).crawl

    def _idle(self) -> bool:
        assert self.scene.fleet
        return self.scene.fleet.service(FORUM_DETAIL).idle

    def _caught_up(self) -> bool:
        """Whether nothing is unread but what has just happened; re-checks may wait, and do so for ever."""
        return self.scene.stored_share >= CAUGHT_UP

    def _scanned(self) -> bool:
        """Whether each board has been scanned to its end by a scan that began after the forum's last change."""
        assert self.frozen_at
        assert self.stage.database
        return scanned(self.stage.database, SITE, self.frozen_at) >= BOARDS

    def _unchecked(self) -> int:
        assert self.frozen_at
        assert self.stage.database
        return unchecked(self.stage.database, SITE, self.frozen_at)
