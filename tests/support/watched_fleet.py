"""Nodes and beats by name, and a watch on every slot: what tests that kill them need."""

from __future__ import annotations

import signal
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Self

import psutil
import redis

from redis_components.admin.inspector import CrawlSnapshot, snapshot
from redis_components.keys import CrawlKeys
from tests.support.crawler_watch import CrawlerWatch, Occupant
from tests.support.fleet import MARK, Program, ToyFleet
from tests.support.processes import wait_until
from workers.environment.declaration import parse_fleet
from workers.state.beats import Beats
from workers.state.keys import FleetKeys
from workers.state.registry import CrawlerRecord


class WatchedFleet(ToyFleet):
    """A fleet on a Redis with AOF; `size` crawlers are named as in TRAWL_FLEET, each node has room for all of them."""

    def __init__(self, folder: Path, sizes: str, *, nodes: str, beats: int, **environment: str) -> None:
        self.sizes = parse_fleet(sizes)
        room = str(sum(self.sizes.values()))
        super().__init__(folder, sizes, aof=True, TRAWL_NODE_CRAWLERS=room, **environment)
        self.slots = [f"{spider}/{number}" for spider, size in self.sizes.items() for number in range(size)]
        self.nodes: dict[str, Program] = {}
        self.beats: list[Program] = []
        self.keys = FleetKeys()
        self._names, self._beats = nodes, beats
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        super().__enter__()
        self.client: redis.Redis = self.redis.client()
        self.watch = self._stack.enter_context(CrawlerWatch((MARK, str(self.folder))))
        for name in self._names:
            self.start_node(name)
        for _ in range(self._beats):
            self.start_beat()
        return self

    def __exit__(self, *error: object) -> None:
        everyone = self._everyone()  # a crawler whose worker is killed leaves after seconds: tests of that end with `stop`
        send_all(everyone, signal.SIGCONT)
        send_all(everyone, signal.SIGKILL)
        super().__exit__(*error)
        self._stack.close()

    def start_node(self, name: str) -> None:
        """Start a node, also again after its death."""
        self.nodes[name] = self.node(name, "--loglevel=INFO")

    def start_beat(self) -> None:
        self.beats.append(self.beat())

    def leader(self) -> Program:
        """The beat that sends, once there is one."""

        def pid() -> str:
            return (Beats(self.client, self.keys).look(self.registry.now()).leader or "").rpartition(":")[2]

        wait_until(lambda: pid() in {str(beat.process.pid) for beat in self.beats}, lambda: f"a beat leads\n{self.said()}")
        leads = pid()
        return next(beat for beat in self.beats if str(beat.process.pid) == leads)

    def wait_ready(self, timeout_s: float = 60.0) -> None:
        """Wait until every node takes tasks."""
        for node in self.nodes.values():
            wait_until(lambda node=node: " ready." in node.said(), node.said, timeout_s)  # type: ignore[misc]

    def frontier(self, spider: str) -> CrawlSnapshot:
        return snapshot(self.client, spider, CrawlKeys.for_spider(spider))

    # who is there

    def occupants(self) -> dict[int, Occupant]:
        return {pid: occupant for pid, (occupant, _) in self.watch.look().items()}

    def at_work(self) -> dict[str, CrawlerRecord]:
        """The crawlers that crawl, by slot; those that are frozen left out."""
        seen = self.watch.look()
        return {name: record for name, record in self.crawlers().items() if record.pid in seen and not seen[record.pid][1]}

    def orphans(self) -> list[Occupant]:
        """Crawlers whose supervisor is gone, or that are not the one of their slot."""
        known = {record.pid for record in self.crawlers().values()}
        return [one for one in self.occupants().values() if one.pid not in known or not psutil.pid_exists(one.supervisor)]

    def hosted(self, node: str) -> list[CrawlerRecord]:
        """The crawlers of a node."""
        return [record for record in self.crawlers().values() if record.node.partition("@")[0] == node]

    def busiest_node(self) -> str:
        return max(self.nodes, key=lambda name: len(self.hosted(name)))

    def members(self, node: str) -> list[psutil.Process]:
        """Every process of a node: worker, pool, crawlers."""
        return family_of(self.nodes[node])

    # the end

    def stop(self, timeout_s: float = 60.0) -> list[str]:
        """SIGTERM to everything, and what is left then: processes, leases, slots that are held. An empty list is right."""
        running = [*self.nodes.values(), *self.beats]
        for one in running:
            if one.process.poll() is None:
                one.process.terminate()
        for one in running:
            one.wait(timeout_s)
        left = [f"process {pid}: {occupant}" for pid, occupant in self.occupants().items()]
        left += [f"process {one.pid} of a node or a beat" for one in self._everyone()]
        for spider, size in self.sizes.items():
            shot = self.frontier(spider)
            if shot.leased or shot.leased_tasks:
                left.append(f"{spider}: {shot.leased} requests and {shot.leased_tasks} start tasks are leased")
            held = [number for number in range(size) if self.client.exists(self.keys.slot(spider, number))]
            left += [f"slot {spider}/{number} is held" for number in held]
        return left

    def _everyone(self) -> list[psutil.Process]:
        """Workers, pools, crawlers and beats that hang together with what was started here."""
        return [process for program in self._running for process in family_of(program)]


def family_of(program: Program) -> list[psutil.Process]:
    """A process and all below it; nothing when it has ended."""
    if program.process.poll() is not None:
        return []
    with suppress(psutil.NoSuchProcess):
        main = psutil.Process(program.process.pid)
        return [main, *main.children(recursive=True)]
    return []


def send_all(processes: Iterable[psutil.Process], number: signal.Signals) -> None:
    """A signal to each of them that is still there."""
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(number)
