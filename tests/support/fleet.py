"""Crawler processes and Celery workers for tests: real ones, on the toy project."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from tests.support import warm_start
from tests.support.processes import arguments, marked, wait_until
from tests.support.redis_server import RedisServer
from workers.state.registry import CrawlerRecord, CrawlerState, Registry

ROOT = Path(__file__).resolve().parents[2]
PROJECTS = ROOT / "tests/support/projects"
MARK = "TRAWL_TEST_FLEET"  # environment variable of every process of a fleet: its folder


def toy_environment(redis_url: str, data: Path, **more: str) -> dict[str, str]:
    """The environment of a process that shall work with the toy project on this Redis."""
    paths = (str(PROJECTS), more.pop("PYTHONPATH", "") or os.environ.get("PYTHONPATH", ""))
    return {
        **os.environ,
        "TRAWL_REDIS_URL": redis_url,
        "TRAWL_DATA_DIR": str(data),
        "SCRAPY_SETTINGS_MODULE": "toy_settings",
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "TRAWL_FLEET": "toy=1",
        "TRAWL_NODE_CRAWLERS": "4",  # each is a process of the pool, which most tests do not need
        "PYTHONUNBUFFERED": "1",
        **more,
    }


class Program:
    """A command in a session of its own, with everything it said in a file."""

    def __init__(self, command: list[str], environment: dict[str, str], log: Path, folder: Path = ROOT) -> None:
        self.log = log
        with log.open("ab") as file:
            self.process = warm_start.Popen(
                command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True
            )

    def said(self) -> str:
        return self.log.read_text(errors="replace")

    def wait(self, timeout_s: float = 60.0) -> int:
        """Its exit code; fails with what it said when it does not end in time."""
        try:
            return self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running after {timeout_s:g} s; it said:\n{self.said()}") from None


@contextmanager
def program(command: list[str], environment: dict[str, str], log: Path) -> Iterator[Program]:
    """Run a Python command; it is killed at the end of the block if it has not ended by then."""
    running = Program([sys.executable, *command], environment, log)
    try:
        yield running
    finally:
        if running.process.poll() is None:
            running.process.kill()
        running.process.wait()


def is_untouched(before: CrawlerRecord, after: CrawlerRecord) -> bool:
    """Whether nobody ended the crawler: it is the same process, or one after it that stood still with the whole machine.

    A virtual machine is paused by its host now and then, once for 10 s in a run: leases last 8, and who stood still for longer
    leaves by itself.
    """
    return after.pid == before.pid or after.last_exit_kind == "lost-slot"


class ToyFleet:
    """A Redis of its own, a beat, and as many Celery workers ("nodes") as a test starts; all of them real processes.

    with ToyFleet(tmp_path, "toy=2") as fleet:
        node = fleet.node("a")
        fleet.wait_whole()
    """

    def __init__(self, folder: Path, sizes: str, *, aof: bool = False, **environment: str) -> None:
        self.folder = folder
        self.redis = self.new_redis(aof=aof)
        self._sizes = sizes
        self._more = environment
        self._running: list[Program] = []

    def __enter__(self) -> Self:
        self.redis.start()
        self.registry = Registry(self.redis.client())
        mark = {MARK: str(self.folder)}
        self.environment = toy_environment(self.redis.url, self.folder / "data", TRAWL_FLEET=self._sizes, **mark, **self._more)
        return self

    def new_redis(self, *, aof: bool) -> RedisServer:
        """The server, not started yet."""
        return RedisServer(aof=aof)

    def __exit__(self, *_: object) -> None:
        for running in self._running:
            if running.process.poll() is None:
                running.process.kill()
            running.process.wait()
        self.redis.close()

    def node(self, name: str = "a", *options: str, **environment: str) -> Program:
        """Start `celery -A tasks worker`, with options and variables of its own only where a test needs them."""
        command = ("-m", "celery", "-A", "tasks", "worker", "-n", f"{name}@test", *options)
        return self._start(name, self.environment_of("worker") | environment, *command)

    def beat(self, *options: str) -> Program:
        return self._celery("beat", "beat", *options)

    def ask(self, expression: str) -> str:
        """What `python -c "from tasks import *; print(EXPRESSION)"` prints: a user's shell. An error counts as printed."""
        return self.run(f"from tasks import *; print({expression})")

    def run(self, script: str, timeout_s: float = 60) -> str:
        """What a Python script prints that runs in the fleet's environment."""
        command = [sys.executable, "-c", script]
        done = warm_start.run(
            command, family="celery", cwd=ROOT, env=self.environment, capture_output=True, text=True, timeout=timeout_s
        )
        return (done.stdout if done.returncode == 0 else done.stderr).strip()

    def crawlers(self) -> dict[str, CrawlerRecord]:
        """The crawlers that crawl, by slot."""
        now = self.registry.now()
        return {r.name: r for r in self.registry.crawlers() if r.state is CrawlerState.RUNNING and r.alive(now)}

    def crawler(self, slot: str) -> CrawlerRecord:
        """The crawler of this slot, once it crawls: on a busy machine its record may be too old to count at any one look."""
        found: CrawlerRecord | None = wait_until(
            lambda: self.crawlers().get(slot), lambda: f"{slot} has a crawler; {self.crawlers()}\n{self.said()}"
        )
        assert found
        return found

    def wait_nothing_in_flight(self) -> None:
        """Wait until each crawler has said so from now on: its last record may be of a moment before."""
        since = self.registry.now()

        def done() -> bool:
            crawlers = self.crawlers().values()
            return bool(crawlers) and all(one.beat_at > since and one.in_flight == 0 for one in crawlers)

        wait_until(done, lambda: f"pages in flight end; {self.crawlers()}\n{self.said()}")

    def wait_whole(self, *slots: str, but_not: Iterable[int] = (), timeout_s: float = 60.0) -> dict[str, CrawlerRecord]:
        """Wait until exactly these slots have a crawler that crawls, none of them with a pid of `but_not`."""

        found: dict[str, CrawlerRecord] = {}

        def whole() -> bool:
            found.clear()
            found.update({name: r for name, r in self.crawlers().items() if r.pid not in set(but_not)})
            return set(found) == set(slots) and {r.pid for r in found.values()} == self.processes()

        wait_until(whole, lambda: f"{slots} have one crawler each; {self.crawlers()}\n{self.said()}", timeout_s)
        return found

    def processes(self) -> set[int]:
        """Every crawler process of this fleet, wherever it hangs by now."""
        return {p.pid for p in marked(MARK, str(self.folder)) if "workers.crawler" in arguments(p)}

    def said(self) -> str:
        return "\n".join(f"--- {p.log.name}\n{p.said()[-3000:]}" for p in self._running)

    def running(self) -> list[Program]:
        """What was started and has not ended."""
        return [program for program in self._running if program.process.poll() is None]

    def program(self, name: str, *command: str) -> Program:
        """Start `python COMMAND` as a part of the fleet."""
        return self._start(name, self.environment, *command)

    def environment_of(self, kind: str) -> dict[str, str]:
        """Of a `worker` or a `beat`."""
        return self.environment

    def _start(self, name: str, environment: dict[str, str], *command: str) -> Program:
        log = self.folder / f"{name}-{len(self._running)}.log"
        started = Program([sys.executable, *command], environment, log)
        self._running.append(started)
        return started

    def _celery(self, name: str, *command: str) -> Program:
        return self._start(name, self.environment_of(command[0]), "-m", "celery", "-A", "tasks", *command)
