"""The demo's folder, options and processes: a database, Redis and logs of its own; started step by step, stopped in order."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import redis

from cli.processes import FlowerAccess, PageAccess, Services, node_services, prefer
from forums.scheduling import seeding
from forums.storage import Database
from redis_components import embedded
from redis_components.connection import connect
from redis_components.embedded import data_dir, files
from redis_components.embedded.files import free_port
from redis_components.errors import TrawlError
from redis_components.server.variables import ENV_FILE
from workers.environment.declaration import Number, Variables, Whole, declare
from workers.state.beats import Schedules, StoredEntry

from .forum.process import ForumProcess

_SITES = Path(__file__).resolve().with_name("sites")  # the demo's forum alone: a demo must not crawl the user's sites
_KEPT_VARIABLES = ("TRAWL_DEMO_", "TRAWL_TEST_", "TRAWL_DEBUG", "TRAWL_REDIS_BIN")  # variables of no fleet


class RunFolderError(TrawlError):
    """The demo cannot write its folder; the message names it and the fix."""


@dataclass(frozen=True, kw_only=True)
class RunFolder:
    """`<data>/demo`: the data of the last run."""

    path: Path

    @classmethod
    def fresh(cls) -> RunFolder:
        """Empty the folder. Raises RunFolderError."""
        path = data_dir() / "demo"
        if _in_use(path):
            raise RunFolderError(f"another demo runs in {path}: end it, or set TRAWL_DATA_DIR to another folder")
        try:
            shutil.rmtree(path, ignore_errors=True)
            (path / "logs").mkdir(parents=True)
        except OSError as error:
            raise RunFolderError(
                f"cannot write to {path} ({error.strerror}): make it writable, or set TRAWL_DATA_DIR to another folder"
            ) from error
        return cls(path=path)

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    @property
    def shown(self) -> str:
        """The folder relative to the working directory, for people."""
        return _from_here(self.path)

    def take_over_environment(self, forum_url: str, fleet: str) -> None:
        """Set the environment of this process, and of every one that it starts, to this folder and the demo's forum.

        Every setting of the user's fleet is dropped: its Redis, sites, database, tasks, limits.
        """
        for name in [name for name in os.environ if name.startswith("TRAWL_") and not name.startswith(_KEPT_VARIABLES)]:
            del os.environ[name]
        config = self.path.resolve() / "trawl.toml"
        config.touch()  # the user's fleet has another
        of_run = {
            ENV_FILE: "",  # this process has read it
            "TRAWL_DATA_DIR": str(self.path.resolve()),
            "TRAWL_SITES_DIR": str(_SITES),
            "TRAWL_CONFIG": str(config),
            "TRAWL_DEMO_URL": forum_url,
            "TRAWL_FLEET": fleet,
            "SCRAPY_SETTINGS_MODULE": "workers.settings",
        }
        os.environ.update(of_run)
        lines = [f"export {name}={shlex.quote(value)}\n" for name, value in of_run.items()]
        (self.path / "terminal.sh").write_text("".join(lines), "utf-8")

    @property
    def terminal(self) -> str:
        """Command that loads the variables into a shell."""
        return f". {shlex.quote(_from_here(self.path / 'terminal.sh'))}"


def trawl_command() -> str:
    """Return the command `trawl` of this environment, relative to the working directory."""
    return _from_here(Path(sys.executable).with_name("trawl"))


def _from_here(path: Path) -> str:
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def _in_use(folder: Path) -> bool:
    keeper = folder / "redis" / "keeper.lock"
    return keeper.exists() and files.is_held(keeper)


LARGEST = 100_000


def _whole(default: int) -> Any:
    return declare(default, rule="must be a whole number: correct it or unset it", ge=0, le=LARGEST)


def _number(default: float) -> Any:
    return declare(default, rule=f"must be a number from 0 to {LARGEST:,}: correct it or unset it", ge=0, le=LARGEST)


class DemoOptions(Variables):
    """Options of `make demo`: `TRAWL_DEMO_THREADS` and so on, and `KEEP=1`."""

    demo_threads: Whole = _whole(180)  # in each of the forum's four boards, at the start
    demo_comments: Number = _number(9.0)  # mean per thread; most have few, some have hundreds
    demo_latency_ms: Number = _number(30.0)  # of each page of the forum
    demo_error_rate: Number = _number(0.02)  # share of pages answered with 500
    demo_throttle_rate: Number = _number(0.003)  # share of pages answered with 429, after which every crawler waits for 1 s
    demo_rate: Number = _number(10.0)  # events per second, while the forum is active; some of them edit or delete
    demo_live_s: Number = _number(15.0)  # how long it stays active after it was read once
    demo_kill_at: Number = _number(0.3)  # stored share of the forum at which a crawler is killed
    demo_seed: Whole = _whole(1)  # of the forum's content

    @property
    def keep(self) -> bool:
        """Leave everything running afterwards, until Ctrl-C."""
        return os.environ.get("KEEP", "0") not in ("", "0")


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
        self.page = PageAccess.on(prefer(EXPORTER_PORT))
        port = free_port()
        folder.take_over_environment(f"http://127.0.0.1:{port}", FLEET)
        self.forum = ForumProcess(
            seed=options.demo_seed,
            forums=BOARDS,
            threads=options.demo_threads,
            comments=options.demo_comments,
            history_days=HISTORY_DAYS,
            pace=PACE,
            port=port,
        )
        self.client: redis.Redis | None = None
        self.database: Database | None = None
        self._logs: dict[str, IO[str]] = {}
        self._services = Services(node_services(self.flower, self.page), self._log)

    def start_redis(self) -> None:
        client = connect(embedded.redis_url())
        client.ping()
        self.client = client
        Schedules(client).set("seed_forums", StoredEntry(every_s=BEAT_S))
        Schedules(client).set("recheck_threads", StoredEntry(every_s=BEAT_S))

    def open_database(self) -> None:
        self.database = Database.from_url().open()

    def start_forum(self) -> None:
        """Start the forum, with slow and sometimes refused pages as in a real site; it is frozen until its rate is set."""
        self.forum.start()
        self.forum.control(
            latency_ms=self.options.demo_latency_ms,
            error_rate=self.options.demo_error_rate,
            throttle_rate=self.options.demo_throttle_rate,
            **CHANGES,
        )

    def seed(self) -> None:
        """Seed the boards, as `trawl seed --force` does, except boards that are being scanned."""
        assert self.client
        seeding.seed(self.client, None, SITE, force=True)

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
        with suppress(TrawlError):  # it ends by itself, once nothing uses it
            embedded.stop()
        for log in self._logs.values():
            log.close()

    def _log(self, service: str, line: str) -> None:
        """Write a line to a service's log file, from the thread that reads its output."""
        if service not in self._logs:
            self._logs[service] = Path(self.folder.logs / f"{service}.log").open("a", encoding="utf-8", buffering=1)  # noqa: SIM115
        with suppress(ValueError):  # closed: the line came too late
            self._logs[service].write(line + "\n")
