"""Hosts a limited number of crawlers on a node. Each place is a file lock: the kernel frees the place of a process that dies.

A place has its crawler's pid, also when its supervisor was killed: a crawler that was suspended at that moment (SIGSTOP) missed
the signal and would stay for ever. The node looks for such a crawler every 2 s, and so does the next process to take the place.
"""

from __future__ import annotations

import fcntl
import logging
import mmap
import os
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import psutil
import redis

from redis_components.admin.inspector import expire_owner
from redis_components.connection import connect
from redis_components.embedded import data_dir
from redis_components.embedded.files import private_folder
from redis_components.errors import TrawlError
from redis_components.keys import keys_in
from redis_components.server.names import node_name, service_name, slot_number
from workers.fleet.sizes import NotInstalled, as_declared, is_wanted
from workers.process.exit_kinds import shutdown_grace
from workers.process.options import CrawlerOptions
from workers.process.page_at_work import PageAtWork
from workers.process.run_recorder import report_run
from workers.state.jobs import Jobs
from workers.state.nodes import Nodes
from workers.state.registry import CrawlerRecord, Registry, Slot
from workers.supervision.supervisor import SlotOutcome, Supervisor, SupervisorConfig, SupervisorHooks

from .health import folder_fault

logger = logging.getLogger(__name__)


class CrawlerSeat:
    """A place that this process holds."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def note(self, pid: int) -> None:
        """Record the pid of the place's present crawler."""
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, str(pid).encode(), 0)

    def close(self) -> None:
        os.close(self._fd)


class NodeCapacity:
    """`size` places on the node called `node`; each is a file in `folder`."""

    def __init__(self, folder: Path, node: str, size: int) -> None:
        self._paths = [folder / f"{re.sub(r'[^A-Za-z0-9@._-]', '_', node)}-{n}.lock" for n in range(size)]

    @contextmanager
    def place(self) -> Iterator[CrawlerSeat | None]:
        """Hold a place while inside; None when there is none left."""
        self.end_strays()  # it would not be known any more when its place knows another crawler
        place = next((place for path in self._paths if (place := _take(path))), None)
        try:
            yield place
        finally:
            if place:
                place.close()

    def taken(self) -> int:
        """Count the places that are taken now."""
        count = 0
        for path in self._paths:
            if place := _take(path):
                place.close()
            else:
                count += 1
        return count

    def end_strays(self) -> None:
        """Kill crawlers that are frozen and have lost their supervisor; any other ends without help."""
        for path in self._paths:
            _end_stray(path)


def _end_stray(path: Path) -> None:
    try:
        pid = int(path.read_text() or 0)
    except (OSError, ValueError):  # none yet, or none that can be read
        return
    if pid and _is_stray(pid):
        logger.warning("crawler %d was frozen when its supervisor died; killing it", pid)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)


def _is_stray(pid: int) -> bool:
    try:
        process = psutil.Process(pid)
        line = process.cmdline()
        if "workers.crawler" not in line or process.status() != psutil.STATUS_STOPPED:
            return False
        parents = [int(word.partition("=")[2]) for word in line if re.fullmatch(r"--parent=\d{1,9}", word)]
        return not any(_is_before(parent, process) for parent in parents)
    except psutil.Error:  # it is gone
        return False


def _is_before(pid: int, process: psutil.Process) -> bool:
    """Return True if there is a process `pid`, not a later one with the number of one that is gone."""
    with suppress(psutil.NoSuchProcess):
        one = psutil.Process(pid)
        return one.status() != psutil.STATUS_ZOMBIE and one.create_time() <= process.create_time()
    return False


def _take(path: Path) -> CrawlerSeat | None:
    private_folder(path.parent)
    fd = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)  # not inherited by programs that we start
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return None
    return CrawlerSeat(fd)


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
OVER = "over"  # of a job: its crawl is over
FULL = "full"  # this node has no place left: a later launch, here or on another node, will do it


class GivenUp(TrawlError):
    """A slot was given up: its crawler does not stay up. `trawl status` shows why; the fleet tries it again later."""


@dataclass(frozen=True, kw_only=True)
class NodeHooks:
    """Functions of the packages above `workers` that a node calls for its crawlers. Without them it launches what is declared."""

    declared: Callable[[redis.Redis, CrawlerOptions, bool], CrawlerOptions] = lambda client, options, _: as_declared(
        client, options
    )
    """Return a crawler's options with the interpreter of its version, which is installed where the last argument is True.
    Raises ConfigError, NotInstalled and `redis.RedisError`."""
    before_launch: Callable[[redis.Redis, CrawlerOptions], Callable[[], object] | None] = lambda _client, _options: None
    """Prepare a launch; return what the heartbeat's thread has to do for it, None for nothing."""
    following: Callable[[Registry, Slot], Slot | None] = lambda _registry, _slot: None
    """Return the slot that takes the place of a finished job, None for none."""
    on_deadly_page: Callable[[PageAtWork, str], object] = lambda _page, _why: None
    """Handle a page at which a crawler hung or died; the text has what happened."""


class Node:
    """This worker. Made once, in its main process and before the pool is forked."""

    def __init__(self) -> None:
        self.drain = DrainFlag()
        self.crawlers = 1  # how many it may host
        self.once = 1  # how many small crawls (`crawl_once`) it may run at one time
        self.any_service = False  # it serves every service of the fleet, and any job
        self.consumers = 1  # how many processes may consume items (`consume_items`): one, or none where the pool is too small

    def room(self, name: str, of: str = "") -> NodeCapacity:
        """Return the places of the worker `name`: for crawlers, `once` (small crawls) or `consumers`."""
        size: int = getattr(self, of or "crawlers")
        return NodeCapacity(data_dir() / "run", f"{name}-{of}" if of else name, size)

    def host(
        self,
        spider: str,
        number: int,
        *,
        name: str,
        on_record: Callable[[CrawlerRecord], None],
        hooks: NodeHooks = NodeHooks(),
    ) -> str:
        """Keep a crawler in the slot until this node is drained, the slot is not wanted any more, or it is hopeless.

        Returns `held`, `over`, `full`, or the supervisor's verdict. Raises ConfigError for what cannot be a slot, GivenUp for one
        that is hopeless, redis.RedisError when Redis is away at the start.
        """
        spider, number, name = service_name(spider), slot_number(number), node_name(name)  # a task's arguments are unchecked
        client = connect()
        registry = Registry(client)
        registry.clear_launch(spider, number)
        if fault := folder_fault(data_dir()):
            registry.report_error(name, f"it starts no crawlers: {fault}")
            return FULL
        try:
            first = hooks.declared(client, CrawlerOptions(spider=spider), True)
        except NotInstalled as error:
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
            if not is_wanted(client, spider, number):
                registry.release(slot)
                return OVER
            around = SupervisorHooks(
                node=name,
                declared=lambda options: hooks.declared(client, options, False),
                draining=self.drain.is_set,
                before_launch=partial(hooks.before_launch, client),
                on_launch=place.note,
                on_record=on_record,
                on_run=partial(report_run, client),
                expire_owner=lambda spider, owner, why: expire_owner(client, keys_in(client, spider), owner, why),
                on_deadly_page=hooks.on_deadly_page,
            )
            return self._crawl(registry, slot, first, around, hooks)

    def _crawl(self, registry: Registry, slot: Slot, options: CrawlerOptions, common: SupervisorHooks, hooks: NodeHooks) -> str:
        """Crawl in a slot, and then, in the same place, the members of its run that come next."""
        config, resting = SupervisorConfig(node_grace_s=shutdown_grace()), None
        try:
            while True:
                around = replace(
                    common,
                    on_finished=partial(Jobs(registry.client).crawler_ended, slot.spider, slot.number),
                    before=registry.crawler(slot.spider, slot.number),
                )
                supervisor = Supervisor(slot, registry, options=options, config=config, hooks=around, resting=resting)
                verdict = supervisor.run()
                resting = supervisor.resting
                if (last := supervisor.last) and last.state.given_up:
                    raise GivenUp(f"{last.name} is {last.state}: {last.note}{f'; {last.error}' if last.error else ''}")
                following = self._following(registry, slot, hooks) if verdict is SlotOutcome.FINISHED else None
                if following is None:
                    return verdict
                slot, options = following
        finally:
            if resting:
                resting.let_go()

    def _following(self, registry: Registry, slot: Slot, hooks: NodeHooks) -> tuple[Slot, CrawlerOptions] | None:
        """Return the member that crawls next in the place of one that is over; None where `reconcile_fleet` gives it away."""
        client = registry.client
        if not self.any_service or self.drain.is_set():
            return None
        try:
            if Nodes(client).is_draining(slot.owner) or (following := hooks.following(registry, slot)) is None:
                return None
            return following, hooks.declared(client, CrawlerOptions(spider=following.spider), True)
        except (redis.RedisError, TrawlError) as error:  # what was done is found by the next step of the run
            logger.warning("%s: its place is given back: %s", slot.name, error)
            return None


NODE = Node()
