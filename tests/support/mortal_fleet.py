"""A fleet to kill, one way after another: mortal spiders on the shared frontier, and a site that counts."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Self

from redis_components.keys import CrawlKeys
from tests.support.crawl import ask_site, hits_of, link_site
from tests.support.mortal_spider import FATES_VARIABLE, Fate
from tests.support.processes import wait_until
from tests.support.watched_fleet import WatchedFleet
from workers.state.registry import CrawlerRecord, SlotCommand, SlotCommandKind

SPIDER = "mortal"
KEYS = CrawlKeys.for_spider(SPIDER, namespace="")
LATENCY_S = 0.2
CHAINS = 40  # requests that wait or run at any time: more than all crawlers together have at work
SETTINGS = """from tests.support.link_settings import *
SPIDER_MODULES = ["tests.support.mortal_spider"]
ITEM_PIPELINES = {}
CRAWLER_MEMORY_SOFT_MB = 256
CRAWLER_MEMORY_HARD_MB = 512
"""


@dataclass(frozen=True, kw_only=True)
class Crawled:
    """What became of one crawl."""

    pages: int
    lost: int  # pages that were linked and never fetched
    twice: int  # fetches beyond the first of each page


class MortalFleet(WatchedFleet):
    """`size` crawlers, two nodes, two beats; `settings` are lines of Python for the crawlers' settings.

    with MortalFleet(folder) as fleet:
        fleet.begin()
        os.kill(fleet.wait_crawling()["mortal/0"].pid, signal.SIGKILL)
        fleet.wait_crawling(since=...)
        assert fleet.end().lost == 0
    """

    def __init__(self, folder: Path, *, size: int = 2, settings: str = "") -> None:
        project = folder / "project"
        project.mkdir()
        self._settings = project / "mortal_settings.py"
        self._written = SETTINGS + settings
        self._settings.write_text(self._written)
        self.fates = folder / "fates"
        (folder / "sites").mkdir()
        environment = {
            "SCRAPY_SETTINGS_MODULE": "mortal_settings",
            "TRAWL_SITES_DIR": str(folder / "sites"),
            "PYTHONPATH": str(project),
            FATES_VARIABLE: str(self.fates),
        }
        super().__init__(folder, f"{SPIDER}={size}", nodes="ab", beats=2, **environment)

    def __enter__(self) -> Self:
        self.site = self._stack.enter_context(link_site(self.folder, pages=0, latency_s=LATENCY_S))
        self.site_listens()
        return super().__enter__()

    def site_listens(self) -> None:
        """Called when `site` answers, before anything of the fleet is started."""

    # a crawl

    def begin(self) -> None:
        """Give the fleet a crawl that goes on until `end`."""
        first = ask_site(self.site, f"begin/{CHAINS}", post=True)
        self.client.rpush(KEYS.start_tasks(), f"{self.site}/{first}")

    def end(self, timeout_s: float = 60.0) -> Crawled:
        """Let the crawl run out, and wait until nothing waits, runs or is leased any more."""
        ask_site(self.site, "end", post=True)

        def idle() -> bool:
            shot = self.frontier(SPIDER)
            return (shot.start_tasks, shot.ready, shot.leased, shot.leased_tasks) == (0, 0, 0, 0)

        wait_until(idle, lambda: f"the crawl runs out; {self.frontier(SPIDER)}\n{self.said()}", timeout_s)
        pages, hits = ask_site(self.site, "chains"), hits_of(self.site)
        return Crawled(
            pages=len(pages),
            lost=sum(page not in hits for page in pages),
            twice=sum(hits.get(page, 1) - 1 for page in pages),
        )

    # who crawls

    def crawling(self, *, since: float, but_not: Iterable[int] = ()) -> dict[str, CrawlerRecord]:
        """The slots whose crawler is at work, is none of `but_not` (pids), and has asked for a page after `since` (epoch s)."""
        asked, occupants = ask_site(self.site, "crawlers"), self.occupants()
        return {
            name: record
            for name, record in self.at_work().items()
            if record.pid in occupants and record.pid not in but_not and asked.get(occupants[record.pid].owner, [0, 0])[1] > since
        }

    def wait_crawling(
        self, *, since: float = 0.0, but_not: Iterable[int] = (), timeout_s: float = 60.0
    ) -> dict[str, CrawlerRecord]:
        """Wait until every slot has such a crawler."""
        excluded, found = set(but_not), dict[str, CrawlerRecord]()

        def whole() -> bool:
            found.clear()
            found.update(self.crawling(since=since, but_not=excluded))
            return set(found) == set(self.slots)

        wait_until(whole, lambda: f"every slot crawls; {found}; {self.watch.look()}\n{self.said()}", timeout_s, every_s=0.05)
        return found

    def late(self, since: float) -> int:
        """Crawlers that asked for a page after `since` (epoch s) although their successor in the slot had asked for one."""
        asked = {owner: times for owner, times in ask_site(self.site, "crawlers").items() if "#" in owner and times[1] > since}
        late = 0
        for slot in self.slots:
            in_order = sorted((owner for owner in asked if owner.startswith(f"{slot}#")), key=_order)
            late += sum(asked[one][1] > asked[heir][0] for one, heir in pairwise(in_order))
        return late

    # what is done to it

    def victim_of(self, fate: Fate, timeout_s: float = 60.0) -> tuple[int, float]:
        """Order a fate; the pid of the crawler that took it, and when (epoch s)."""
        taken = self.fates / "taken"
        taken.unlink(missing_ok=True)
        fate.order(self.fates)
        wait_until(taken.exists, lambda: f"somebody takes {fate}\n{self.said()}", timeout_s, every_s=0.005)
        pid, at = taken.read_text().split()
        return int(pid), float(at)

    def break_configuration(self) -> None:
        """From now on no crawler gets farther than its settings: exit code 1."""
        self._settings.write_text("raise OSError('the disk with the settings is broken')\n")

    def replace_crawlers(self) -> None:
        """Give each slot a new crawler, as a roll does: its quick ends are counted from none."""
        reason, slots = f"deaths until {time.time()}", self.registry.slots({}, self.registry.crawlers())
        for view in slots:
            self.registry.order(view, SlotCommand(word=SlotCommandKind.RELOAD, reason=reason))
        ordered = {view.name for view in slots if view.token is not None}

        def replaced() -> bool:
            records = self.at_work()
            return set(records) == set(self.slots) and all(records[name].story.reload == reason for name in ordered)

        wait_until(replaced, lambda: f"every slot has a new crawler; {self.at_work()}\n{self.said()}")

    def mend_configuration(self) -> None:
        self._settings.write_text(self._written)
        self.registry.forget(one.name for one in self.registry.crawlers() if one.state.given_up)  # as `trawl resume`


def _order(owner: str) -> tuple[int, int]:
    """By token, then by restarts."""
    token, _, restarts = owner.partition("#")[2].partition(".")
    return int(token), int(restarts)
