"""Processes of the demo: Redis, the forum, the node's services. Started step by step, stopped in order."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO

import redis

from cli.processes.node_services import FlowerAccess, node_services
from cli.processes.ports import prefer
from cli.processes.services import Services
from forums.scheduling import rechecking, seeding
from forums.storage import Database
from redis_components import embedded
from redis_components.connection import connect
from redis_components.embedded.server import free_port
from redis_components.errors import TrawlError
from workers.state.schedules import Schedules, StoredEntry

from .forum.process import ForumProcess
from .options import DemoOptions
from .run_folder import RunFolder

FLOWER_PORT = 5655  # not 5555 and 9410, which `trawl up` needs while a demo runs
EXPORTER_PORT = 9510
BOARDS = 4  # as many as demo/sites/demo.toml names
FLEET = "forum_list=1,forum_detail=1"
SITE = "demo"
CHANGES = {"edit_rate": 0.12, "delete_rate": 0.06, "move_rate": 0.01}  # shares of the forum's events
PACE = 60.0  # seconds of forum time in a second: an hour passes in a minute
BEAT_S = 1.0  # interval of seeding and checks: usually 5 s and 30 s, for a forum in real time
HISTORY_DAYS = 0.5  # of forum time: its past activity is then about that of the crawl


class DemoProcesses:
    """Starts and stops the processes. `client` is set by `start_redis`, `database` by `open_database`."""

    def __init__(self, options: DemoOptions, folder: RunFolder) -> None:
        self.options = options
        self.folder = folder
        self.flower = FlowerAccess.on(prefer(FLOWER_PORT))
        self.exporter_port = prefer(EXPORTER_PORT)
        port = free_port()
        folder.take_over_environment(f"http://127.0.0.1:{port}", FLEET)
        self.forum = ForumProcess(
            seed=options.seed,
            forums=BOARDS,
            threads=options.threads,
            comments=options.comments,
            history_days=HISTORY_DAYS,
            pace=PACE,
            port=port,
        )
        self.client: redis.Redis | None = None
        self.database: Database | None = None
        self._logs: dict[str, IO[str]] = {}
        self._services = Services(node_services(self.flower, self.exporter_port), self._log)

    @property
    def exporter_url(self) -> str:
        return f"http://127.0.0.1:{self.exporter_port}"

    def start_redis(self) -> None:
        client = connect(embedded.redis_url())
        client.ping()
        self.client = client
        Schedules(client).put("seed_forums", StoredEntry(every_s=BEAT_S))
        self.recheck(True)

    def open_database(self) -> None:
        self.database = Database.from_url().open()

    def start_forum(self) -> None:
        """Start the forum, with slow and sometimes refused pages as in a real site; it is frozen until its rate is set."""
        self.forum.start()
        self.forum.control(
            latency_ms=self.options.latency_ms,
            error_rate=self.options.error_rate,
            throttle_rate=self.options.throttle_rate,
            **CHANGES,
        )

    def seed(self) -> None:
        """Seed the boards, as `trawl seed --force` does, except boards that are being scanned."""
        assert self.client
        seeding.seed(self.client, None, SITE, force=True)

    def recheck(self, on: bool) -> None:
        """Enable or disable beat's checks of due threads, as `trawl schedule` does."""
        assert self.client
        Schedules(self.client).put("recheck_threads", StoredEntry(every_s=BEAT_S, enabled=on))

    def check_all(self) -> None:
        """Check up to 1,000 threads, the least recently checked first, as `recheck_threads.delay(force=True)` does."""
        assert self.client
        assert self.database
        rechecking.recheck(self.client, self.database, SITE, force=True)

    def start_services(self) -> None:
        self._services.start()

    def tend(self) -> None:
        """Restart a service that has died. Raises ServiceFailed when that does not help."""
        self._services.tend()

    def stop(self, *, hurry: Callable[[], bool]) -> None:
        """Stop everything that was started, also after an incomplete start."""
        self._services.stop(hurry=hurry)
        self.forum.stop()
        if self.database:
            self.database.close()
        with suppress(TrawlError):  # what does not stop is reported as left over
            embedded.stop()
        for log in self._logs.values():
            log.close()

    def _log(self, service: str, line: str) -> None:
        """Write a line to a service's log file, from the thread that reads its output."""
        if service not in self._logs:
            self._logs[service] = Path(self.folder.logs / f"{service}.log").open("a", encoding="utf-8", buffering=1)  # noqa: SIM115
        with suppress(ValueError):  # closed: the line came too late
            self._logs[service].write(line + "\n")
