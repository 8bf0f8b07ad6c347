"""A fleet to kill: real nodes and beats, mortal spiders on the shared frontier, a site that counts, and a watch on every slot."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import psutil
import redis

from redis_components.inspector import CrawlSnapshot, snapshot
from redis_components.keys import CrawlKeys, FleetKeys
from redis_components.registry import CrawlerRecord

from .crawl import ask_site, hits_of, link_site
from .crawler_watch import CrawlerWatch, Occupant
from .fleet import Program, ToyFleet
from .mortal_spider import FATES_VARIABLE, Fate
from .processes import wait_until
from .redis_server import RedisServer

SPIDER = "mortal"
KEYS = CrawlKeys.for_spider(SPIDER, namespace="")
LATENCY_S = 0.2
CHAINS = 40  # requests that wait or run at any time: more than all crawlers together have at work
MARK = "TRAWL_TEST_FLEET"
SETTINGS = """from tests.support.link_settings import *
SPIDER_MODULES = ["tests.support.mortal_spider"]
"""


@dataclass(frozen=True, kw_only=True)
class Crawled:
    """What became of one crawl."""

    pages: int
    lost: int  # pages that were linked and never fetched
    twice: int  # fetches beyond the first of each page


def owner_of(record: CrawlerRecord) -> str:
    """The frontier's name for the process, which the site knows as its user agent."""
    return f"{record.name}#{record.token}.{record.restarts}"


class MortalFleet(ToyFleet):
    """`size` crawlers on two nodes, each with room for all of them, and as many beats.

    with MortalFleet(folder) as fleet:
        fleet.begin()
        os.kill(fleet.wait_crawling()["mortal/0"].pid, signal.SIGKILL)
        fleet.wait_crawling(since=...)
        assert fleet.end().lost == 0
    """

    def __init__(self, folder: Path, *, size: int = 2, settings: str = "", **environment: str) -> None:
        project = folder / "project"
        project.mkdir()
        self._settings = project / "mortal_settings.py"
        self._written = SETTINGS + settings
        self._settings.write_text(self._written)
        self.fates = folder / "fates"
        super().__init__(
            folder,
            f"{SPIDER}={size}",
            SCRAPY_SETTINGS_MODULE="mortal_settings",
            PYTHONPATH=str(project),
            TRAWL_NODE_CRAWLERS=str(size),
            **{FATES_VARIABLE: str(self.fates), **environment},
        )
        self.redis = RedisServer(aof=True)
        self.slots = [f"{SPIDER}/{number}" for number in range(size)]
        self.nodes: dict[str, Program] = {}
        self.beats: list[Program] = []
        self._stack = ExitStack()

    def __enter__(self) -> MortalFleet:
        super().__enter__()
        self.client: redis.Redis = self.redis.client()
        self.keys = FleetKeys()
        self.watch = self._stack.enter_context(CrawlerWatch((MARK, str(self.folder))))
        self.site = self._stack.enter_context(link_site(self.folder, pages=0, latency_s=LATENCY_S))
        for name in ("a", "b"):
            self.start_node(name)
            self.beats.append(self.beat())
        return self

    def __exit__(self, *error: object) -> None:
        for process in self._everyone():
            process.send_signal(signal.SIGCONT)
        super().__exit__(*error)
        self._stack.close()

    def start_node(self, name: str) -> Program:
        self.nodes[name] = self.node(name)
        return self.nodes[name]

    # a crawl

    def begin(self) -> None:
        """Give the fleet a crawl that goes on until `end`."""
        first = ask_site(self.site, f"begin/{CHAINS}", post=True)
        self.client.rpush(KEYS.start_tasks(), f"{self.site}/{first}")

    def end(self, timeout_s: float = 30.0) -> Crawled:
        """Let the crawl run out, and wait until nothing waits, runs or is leased any more."""
        ask_site(self.site, "end", post=True)

        def idle() -> bool:
            shot = self.frontier()
            return (shot.start_tasks, shot.ready, shot.leased, shot.leased_tasks) == (0, 0, 0, 0)

        wait_until(idle, lambda: f"the crawl runs out; {self.frontier()}\n{self.said()}", timeout_s)
        pages, hits = ask_site(self.site, "chains"), hits_of(self.site)
        return Crawled(
            pages=len(pages),
            lost=sum(page not in hits for page in pages),
            twice=sum(hits.get(page, 1) - 1 for page in pages),
        )

    def frontier(self) -> CrawlSnapshot:
        return snapshot(self.client, SPIDER, KEYS)

    # who crawls

    def crawling(self, *, since: float = 0.0, but_not: Iterable[int] = ()) -> dict[str, CrawlerRecord]:
        """The slots whose crawler is there, not frozen, none of `but_not` (pids), and has asked for a page after `since`
        (epoch s).
        """
        seen, asked = self.watch.look(), ask_site(self.site, "crawlers")
        return {
            name: record
            for name, record in self.crawlers().items()
            if record.pid in seen
            and not seen[record.pid][1]
            and record.pid not in but_not
            and asked.get(owner_of(record), [0, 0])[1] > since
        }

    def wait_crawling(
        self, *, since: float = 0.0, but_not: Iterable[int] = (), timeout_s: float = 40.0
    ) -> dict[str, CrawlerRecord]:
        """Wait until every slot has such a crawler."""
        excluded, found = set(but_not), dict[str, CrawlerRecord]()

        def whole() -> bool:
            found.clear()
            found.update(self.crawling(since=since, but_not=excluded))
            return set(found) == set(self.slots)

        wait_until(whole, lambda: f"every slot crawls; {found}; {self.watch.look()}\n{self.said()}", timeout_s, every_s=0.05)
        return found

    def occupants(self) -> dict[int, Occupant]:
        return {pid: occupant for pid, (occupant, _) in self.watch.look().items()}

    def orphans(self) -> list[Occupant]:
        """Crawlers whose supervisor is gone, or that are not the one of their slot."""
        known = {record.pid for record in self.crawlers().values()}
        return [one for one in self.occupants().values() if one.pid not in known or not psutil.pid_exists(one.supervisor)]

    def late(self) -> int:
        """Crawlers that asked for a page after their successor in the slot had asked for its first."""
        asked = {owner: times for owner, times in ask_site(self.site, "crawlers").items() if "#" in owner}
        late = 0
        for slot in self.slots:
            in_order = sorted((owner for owner in asked if owner.startswith(f"{slot}#")), key=_order)
            late += sum(asked[one][1] > asked[heir][0] for one, heir in pairwise(in_order))
        return late

    def busiest_node(self) -> str:
        """The node with the most crawlers."""
        hosted = [record.node.partition("@")[0] for record in self.crawlers().values()]
        return max(self.nodes, key=hosted.count)

    def members(self, node: str) -> list[psutil.Process]:
        """Every process of a node: worker, pool, crawlers."""
        main = psutil.Process(self.nodes[node].process.pid)
        return [main, *main.children(recursive=True)]

    def victim_of(self, fate: Fate, timeout_s: float = 15.0) -> tuple[str, float]:
        """Order a fate; the owner that took it, and when (epoch s)."""
        taken = self.fates / "taken"
        taken.unlink(missing_ok=True)
        fate.order(self.fates)
        wait_until(taken.exists, lambda: f"somebody takes {fate}\n{self.said()}", timeout_s, every_s=0.005)
        owner, at = taken.read_text().split()
        return owner, float(at)

    def break_configuration(self) -> None:
        """From now on no crawler gets farther than its settings: exit code 1."""
        self._settings.write_text("raise OSError('the disk with the settings is broken')\n")

    def mend_configuration(self) -> None:
        self._settings.write_text(self._written + f"# mended at {time.time()}\n")

    # the end

    def stop(self, timeout_s: float = 30.0) -> list[str]:
        """SIGTERM to everything, and what is left then: processes, leases, slots that are held. An empty list is right."""
        running = [*self.nodes.values(), *self.beats]
        for one in running:
            if one.process.poll() is None:
                one.process.terminate()
        for one in running:
            one.wait(timeout_s)
        shot = self.frontier()
        left = [f"process {pid}: {occupant}" for pid, occupant in self.occupants().items()]
        left += [f"process {one.pid} of a node or a beat" for one in self._everyone()]
        left += (
            [f"{shot.leased} requests and {shot.leased_tasks} start tasks are leased"] if shot.leased or shot.leased_tasks else []
        )
        left += [f"slot {name} is held" for name in self.slots if self.client.exists(self.keys.slot(SPIDER, int(name[-1])))]
        return left

    def _everyone(self) -> list[psutil.Process]:
        """Workers, pools and beats that are there; none of them, when they have ended."""
        found = []
        for program in (*self.nodes.values(), *self.beats, *self._running):
            if program.process.poll() is None:
                main = psutil.Process(program.process.pid)
                found += [main, *main.children(recursive=True)]
        return found


def _order(owner: str) -> tuple[int, int]:
    """By token, then by restarts."""
    token, _, restarts = owner.partition("#")[2].partition(".")
    return int(token), int(restarts)


def send_all(processes: Iterable[psutil.Process], number: signal.Signals) -> None:
    """A signal to each of them that is still there."""
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(number)
