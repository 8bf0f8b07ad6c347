"""A node hosts crawlers: the body of the task `run_crawler`, and what its worker's main process and its pool share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from redis_components.connection import connect
from redis_components.embedded import data_dir
from redis_components.errors import TrawlError
from redis_components.inspector import expire_owner
from redis_components.keys import CrawlKeys
from redis_components.nodes import Nodes
from redis_components.registry import CrawlerRecord, Registry
from redis_components.runs import Runs

from .crawler_options import CrawlerOptions
from .drain import DrainFlag
from .grace import shutdown_grace
from .room import Room
from .supervisor import Supervisor, SupervisorConfig, Surroundings

HELD = "held"  # another process has the slot: this launch came twice
FULL = "full"  # this node has no place left: another one, or a later launch, will do it


class GivenUp(TrawlError):
    """A slot is left alone, its crawler cannot be kept running; `trawl status` shows why, and it is tried again by itself."""


class Node:
    """This worker. Made once, in its main process and before the pool is forked."""

    def __init__(self) -> None:
        self.drain = DrainFlag()
        self.crawlers = 1  # how many it may host
        self.once = 1  # how many small crawls (`crawl_once`) it may run at one time

    def room(self, name: str, folder: Callable[[], Path] = data_dir) -> Room:
        return Room(folder() / "run", name, self.crawlers)

    def once_room(self, name: str, folder: Callable[[], Path] = data_dir) -> Room:
        return Room(folder() / "run", f"{name}-once", self.once)

    def host(self, spider: str, number: int, *, name: str, on_record: Callable[[CrawlerRecord], None]) -> str:
        """Keep a crawler in the slot until this node is drained, the slot is not wanted any more, or it is hopeless.

        Returns `held`, `full`, or the supervisor's verdict. Raises GivenUp for a hopeless one, redis.RedisError when Redis is
        away at the start.
        """
        client = connect()
        registry = Registry(client)
        registry.clear_launch(spider, number)
        with self.room(name).place() as place:
            if registry.is_held(spider, number):
                return HELD
            if self.drain.is_set() or Nodes(client).is_draining(name):
                return FULL
            if place is None:
                what = f"no place for {spider}/{number}: this node hosts {self.crawlers} crawlers"
                registry.report_error(name, f"{what}; start another node, or raise TRAWL_NODE_CRAWLERS")
                return FULL
            slot = registry.acquire(spider, number, name)
            if slot is None:
                return HELD
            surroundings = Surroundings(
                node=name,
                draining=self.drain.is_set,
                on_launch=place.note,
                on_record=on_record,
                on_run=Runs(client).add,
                expire_owner=lambda spider, owner: expire_owner(client, CrawlKeys.for_spider(spider), owner),
                before=registry.crawler(spider, number),
            )
            config = SupervisorConfig(node_grace_s=shutdown_grace())
            options = CrawlerOptions(spider=spider)
            supervisor = Supervisor(slot, registry, options=options, config=config, surroundings=surroundings)
            verdict = supervisor.run()
            if (last := supervisor.last) and last.state.given_up:
                raise GivenUp(f"{last.name} is {last.state}: {last.note}{f'; {last.error}' if last.error else ''}")
            return verdict


NODE = Node()
