"""A fleet that crawls the demo's living forum, and its verdict once the forum stands still."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from demo.compare import Coverage, compare, scanned, unchecked
from demo.forum.process import ForumProcess
from forums.scheduling.rechecking import recheck
from forums.scheduling.seeding import seed
from forums.storage import Database
from tests.support.fleet import ROOT
from tests.support.processes import wait_until
from tests.support.watched_fleet import WatchedFleet

BOARDS = 4  # as many as demo/sites/demo.toml names
SITE = "demo"
SPIDERS = ("forum_list", "forum_detail")
CHECK_ROUNDS = 5  # of the checks of everything, each of at most 1,000 threads: some find a thread that moves while it is read
QUIET_LOOKS = 3  # figures of one look are not of one instant: nothing may have moved over so many


class ForumFleet(WatchedFleet):
    """Nodes, beats and crawlers, the demo's forum, a database; three nodes and four crawlers unless told otherwise."""

    def __init__(
        self,
        folder: Path,
        forum: ForumProcess,
        *,
        sizes: str = "forum_list=1,forum_detail=3",
        nodes: Sequence[str] = "abc",
        beats: int = 2,
        boards: int = BOARDS,
        sites: Path = ROOT / "demo" / "sites",
        rules: str = "",  # what the rules file of events says; without it there is none
        database_url: str = "",
    ) -> None:
        self.database_url = database_url or f"sqlite:///{folder / 'trawl.sqlite'}"
        environment = {
            "SCRAPY_SETTINGS_MODULE": "workers.settings",
            "TRAWL_SITES_DIR": str(sites),
            "TRAWL_DEMO_URL": forum.url,
            "TRAWL_DATABASE_URL": self.database_url,
        }
        if rules:
            (folder / "trawl.toml").write_text(rules, "utf-8")
            environment["TRAWL_CONFIG"] = str(folder / "trawl.toml")
        super().__init__(folder, sizes, nodes="".join(nodes), beats=beats, **environment)
        self.forum = forum
        self._boards = boards
        self._sites = sites

    def whole(self) -> bool:
        return self.at_work().keys() == set(self.slots)

    def wait_whole_again(self, timeout_s: float = 120.0) -> None:
        wait_until(self.whole, lambda: f"every slot crawls; {self.watch.look()}\n{self.said()}", timeout_s, every_s=0.1)

    def settle(self, timeout_s: float) -> tuple[Coverage, Coverage]:
        """Let the forum stand still, wait until everything is crawled, checked and stored, and compare the database with it.

        `timeout_s` bounds how long no request is finished: a site that answered with 429 is read at a lower rate.
        """
        self.forum.control(rate=0)
        still_since = datetime.now(UTC)
        self.wait_crawled(timeout_s)
        with Database.from_url(self.database_url) as database:
            for _ in range(CHECK_ROUNDS):
                if unchecked(database, SITE, still_since):
                    with self._site_files():
                        recheck(self.client, database, SITE, force=True)
                    self._wait_idle(timeout_s)
            return compare(database, self.forum.truth(), SITE)

    def wait_crawled(self, timeout_s: float) -> None:
        """Seed a forum that stands still, and wait until all of it is scanned and nothing waits any more."""
        since = datetime.now(UTC)
        with Database.from_url(self.database_url) as database:

            def all_scanned() -> bool:
                with self._site_files():
                    seed(self.client, site=SITE, force=True)  # beat would, when the policy says so: for quiet boards in an hour
                return scanned(database, SITE, since) >= self._boards

            wait_until(all_scanned, lambda: self._waits("a scan of each board"), timeout_s, every_s=1.0)
        self._wait_idle(timeout_s)

    def given_up(self) -> int:
        """Requests that were set aside as dead, and items that the database refused."""
        shots = [self.frontier(spider) for spider in SPIDERS]
        return sum(shot.dead + shot.bad_items for shot in shots)

    @contextmanager
    def _site_files(self) -> Iterator[None]:
        """This process reads the fleet's site files."""
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("TRAWL_SITES_DIR", str(self._sites))
            yield

    def _wait_idle(self, timeout_s: float) -> None:
        seen: list[tuple[int, ...]] = []

        def settled() -> bool:
            figures = self._figures()
            if seen and (seen[-1] != figures or any(figures[:-2])):
                seen.clear()
            seen.append(figures)
            return len(seen) >= QUIET_LOOKS and not any(figures[:-2])

        def finished() -> list[int]:
            return [figures[-2] for figures in seen[-1:]]

        wait_until(settled, lambda: self._waits("an idle frontier"), timeout_s, every_s=0.5, progress=finished)

    def _figures(self) -> tuple[int, ...]:
        """What waits or is worked on, the detail service first; at the end what was finished. Scans go on for ever."""
        detail, lists = self.frontier("forum_detail"), self.frontier("forum_list")
        waiting = (detail.start_tasks, detail.ready, detail.leased, detail.leased_tasks, detail.items)
        return (*waiting, detail.acked, lists.dead)

    def _waits(self, what: str) -> str:
        return f"{what}; {[self.frontier(spider) for spider in SPIDERS]}\n{self.said()}"
