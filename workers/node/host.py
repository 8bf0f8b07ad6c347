"""The flag of a node's shutdown: one byte that a worker's main process shares with its pool by fork."""

from __future__ import annotations

import mmap
from collections.abc import Callable
from functools import partial
from pathlib import Path

from redis_components.admin.crawl_records import keys_in
from redis_components.connection import connect
from redis_components.embedded import data_dir
from redis_components.errors import TrawlError
from redis_components.frontier.reclaim_leases import expire_owner
from redis_components.server.names import node_name, service_name, slot_number
from workers.deploy.project_wheel import BuildFailed
from workers.fleet.declared_options import as_declared
from workers.process.options import CrawlerOptions
from workers.process.page_at_work import PageAtWork
from workers.process.shutdown_times import shutdown_grace
from workers.state.jobs import Jobs
from workers.state.nodes import Nodes
from workers.state.registry import CrawlerRecord, Registry
from workers.state.runs import Runs
from workers.supervision.supervisor import Supervisor
from workers.supervision.supervisor_config import SupervisorConfig, SupervisorHooks

from .capacity import NodeCapacity
from .health import FailedStarts, folder_fault


class DrainFlag:
    """Set by the main process, seen at once by every process forked from it since; make it before the fork."""

    def __init__(self) -> None:
        self._byte = mmap.mmap(-1, 1)

    def set(self) -> None:
        self._byte[0] = 1

    def clear(self) -> None:
        self._byte[0] = 0

    def is_set(self) -> bool:
        return self._byte[0] == 1


HELD = "held"  # another process has the slot: this launch came twice
FULL = "full"  # this node has no place left: a later launch, here or on another node, will do it


class GivenUp(TrawlError):
    """A slot was given up: its crawler does not stay up. `trawl status` shows why; the fleet tries it again later."""


class Node:
    """This worker. Made once, in its main process and before the pool is forked."""

    def __init__(self) -> None:
        self.drain = DrainFlag()
        self.failed_starts = FailedStarts()
        self.crawlers = 1  # how many it may host
        self.once = 1  # how many small crawls (`crawl_once`) it may run at one time
        self.consumers = 1  # how many processes may consume items (`consume_items`): one, or none where the pool is too small

    def room(self, name: str, folder: Callable[[], Path] = data_dir) -> NodeCapacity:
        return NodeCapacity(folder() / "run", name, self.crawlers)

    def once_room(self, name: str, folder: Callable[[], Path] = data_dir) -> NodeCapacity:
        return NodeCapacity(folder() / "run", f"{name}-once", self.once)

    def consumers_room(self, name: str, folder: Callable[[], Path] = data_dir) -> NodeCapacity:
        return NodeCapacity(folder() / "run", f"{name}-consumers", self.consumers)

    def host(
        self,
        spider: str,
        number: int,
        *,
        name: str,
        on_record: Callable[[CrawlerRecord], None],
        on_deadly_page: Callable[[PageAtWork, str], object] = lambda _page, _why: None,
    ) -> str:
        """Keep a crawler in the slot until this node is drained, the slot is not wanted any more, or it is hopeless.

        Returns `held`, `full`, or the supervisor's verdict. Raises ConfigError for what cannot be a slot, GivenUp for a hopeless
        one, redis.RedisError when Redis is away at the start.
        """
        spider, number, name = service_name(spider), slot_number(number), node_name(name)  # a task's arguments are unchecked
        client = connect()
        registry = Registry(client)
        registry.clear_launch(spider, number)
        if fault := folder_fault(data_dir()):
            registry.report_error(name, f"it starts no crawlers: {fault}")
            return FULL
        try:
            first = as_declared(client, CrawlerOptions(spider=spider), install=True)
        except BuildFailed as error:
            registry.report_error(name, str(error))
            return FULL
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
            declared = partial(as_declared, client)
            surroundings = SupervisorHooks(
                node=name,
                declared=declared,
                on_finished=partial(Jobs(client).crawler_ended, spider, number),
                draining=self.drain.is_set,
                on_launch=place.note,
                on_start=self.failed_starts.note,
                on_record=on_record,
                on_run=Runs(client).add,
                expire_owner=lambda spider, owner, why: expire_owner(client, keys_in(client, spider), owner, why),
                on_deadly_page=on_deadly_page,
                before=registry.crawler(spider, number),
            )
            config = SupervisorConfig(node_grace_s=shutdown_grace())
            supervisor = Supervisor(slot, registry, options=first, config=config, surroundings=surroundings)
            verdict = supervisor.run()
            if (last := supervisor.last) and last.state.given_up:
                raise GivenUp(f"{last.name} is {last.state}: {last.note}{f'; {last.error}' if last.error else ''}")
            return verdict


NODE = Node()
