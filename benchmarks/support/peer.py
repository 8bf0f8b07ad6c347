"""One peer in a fresh process, and what Redis had to do for it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any

import redis

from benchmarks.peers.environment import interpreter
from benchmarks.peers.job import Job
from redis_components.embedded.die_with_parent import tied
from tests.support.proxy import Proxy
from tests.support.redis_server import RedisServer

from .report import BenchmarkFailed, Report
from .rounds import Figures

ROOT = Path(__file__).parents[2]
TIMEOUT_S = 900.0
START_KEY = "bench:start_urls"
COUNTER = ("/usr/bin/valgrind", "--tool=cachegrind", "--cache-sim=no")  # fifteen times as slow
SCRAPY_REDIS = ("scrapy-redis", "scrapy-redis+stats")


def scrapy_redis_peers(report: Report, *, left_out: bool) -> tuple[str, ...]:
    """Return the two peers of scrapy-redis; none if not wanted or not installable, with a note in the report."""
    if not left_out and interpreter() is not None:
        return SCRAPY_REDIS
    report.caveats.append("scrapy-redis was left out" + ("." if left_out else ": its environment could not be installed."))
    return ()


class PeerProcess:
    """A crawl that runs; `figures()` waits for its end, `terminate()` asks for it. Leaving the block kills what is left."""

    def __init__(self, job: Job, *, tree: Path = ROOT, counted: bool = False) -> None:
        self.job = job
        self._folder = tempfile.TemporaryDirectory(prefix="trawl-bench-")
        folder = Path(self._folder.name)
        job.save(folder / "job.json")
        # With the fleet's settings a crawler fetches only what a site file names.
        (folder / "bench.toml").write_text(f'profile = "generic"\nbase_url = "{job.site}"\nforums = ["f1"]\n', encoding="utf-8")
        self._log = folder / "log"
        self._counts = folder / "cachegrind.out"
        counter = (*COUNTER, f"--cachegrind-out-file={self._counts}") if counted else ()
        python = sys.executable if tree == ROOT else str(tree / ".venv" / "bin" / "python")
        if job.peer in SCRAPY_REDIS:
            found = interpreter()
            if found is None:
                raise BenchmarkFailed("scrapy-redis is not installed")
            python = found
        # The fleet's settings read the variables. The log goes to a file, as in a fleet: a pipe would keep this process busy.
        environment = {
            **os.environ,
            "PYTHONPATH": str(tree),
            **({"PYTHONHASHSEED": "0"} if counted else {}),
            "TRAWL_REDIS_URL": job.redis_url or "redis://127.0.0.1:1/0",
            "TRAWL_SITES_DIR": str(folder),
        }
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # each start would compile its modules, some of them in the crawl
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                tied(*counter, python, "-m", "benchmarks.peers.crawl", str(folder / "job.json")),
                cwd=tree,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=log,
            )

    def figures(self, timeout_s: float = TIMEOUT_S) -> Figures:
        """Return the figures that the process printed at its end. Raises BenchmarkFailed with its log if it printed none."""
        try:
            out, _ = self.process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            raise BenchmarkFailed(f"{self.job.peer}: not done after {timeout_s:g} s: {self.output()}") from None
        if self.process.returncode or not out.strip():
            raise BenchmarkFailed(f"{self.job.peer}: exit code {self.process.returncode}: {self.output()}")
        figures: Figures = json.loads(out.splitlines()[-1])
        if self._counts.exists():
            figures["instructions"] = int(self._counts.read_text().rpartition("summary: ")[2])
        return figures

    def terminate(self) -> None:
        """SIGTERM: Scrapy closes in an orderly way."""
        self.process.terminate()

    def output(self) -> str:
        """Return the end of its log."""
        return self._log.read_text(errors="replace")[-3000:]

    def __enter__(self) -> PeerProcess:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.process.kill()
        with suppress(ValueError, OSError):
            self.process.communicate(timeout=10)
        self._folder.cleanup()


def run(job: Job, **of_the_process: Any) -> Figures:
    """One crawl from its start to its end. Raises BenchmarkFailed where it fetched nothing."""
    with PeerProcess(job, **of_the_process) as process:
        figures = process.figures()
        if not figures["pages"]:
            raise BenchmarkFailed(f"{job.peer}: no page was fetched: {process.output()}")
        return figures


def run_with_redis(
    job: Job, server: RedisServer, *, delay_ms: float = 0.0, seeds: Iterable[str] = (), **of_the_process: Any
) -> Figures:
    """One crawl on an empty Redis (the benchmark's own), `delay_ms` added to each round trip; with what Redis did for it.

    `seeds` are the start URLs; vanilla Scrapy gets them as its own and no Redis. `of_the_process`: the arguments of PeerProcess:
    `tree` is another checkout that is measured, with its own environment; `counted` adds the number of `instructions`.
    """
    urls = tuple(seeds)
    if job.peer == "vanilla":
        return run(replace(job, urls=urls), **of_the_process)
    with server.client() as client, distance(server, delay_ms) as url:
        client.flushall()
        seed(client, urls)
        before = RedisWork.of(client)
        figures = run(replace(job, redis_url=url), **of_the_process)
        return {**figures, **RedisWork.of(client).per_page(before, figures["pages"])}


@contextmanager
def distance(server: RedisServer, delay_ms: float) -> Iterator[str]:
    """Yield the URL of `server` at this distance; without a distance there is no proxy, which would add one."""
    if not delay_ms:
        yield server.url
        return
    with Proxy(server.port, round_trip_s=delay_ms / 1000) as proxy:
        yield server.url.replace(f":{server.port}/", f":{proxy.port}/")


def seed(client: redis.Redis, urls: Iterable[str]) -> None:
    """Put start URLs into the key of the measured spider, in the form that both Trawl and scrapy-redis read."""
    tasks = [json.dumps({"url": url}) for url in urls]
    if tasks:
        client.rpush(START_KEY, *tasks)


@dataclass(frozen=True, kw_only=True)
class RedisWork:
    """Counters of a server's work.

    `reads` of sockets stand for round trips: what is sent together is read together, and a message over 16 KiB counts more
    than once. `commands` are all that ran, those inside `scripts` too; `cpu_s` is the CPU time of the server process.
    """

    reads: int
    scripts: int
    commands: int
    cpu_s: float

    @classmethod
    def of(cls, client: redis.Redis) -> RedisWork:
        """Ask the server."""
        info = client.info("everything")
        calls = {name.removeprefix("cmdstat_"): one["calls"] for name, one in info.items() if name.startswith("cmdstat_")}
        return cls(
            reads=info.get("total_reads_processed", 0),
            scripts=calls.get("evalsha", 0) + calls.get("eval", 0),
            commands=sum(calls.values()),
            cpu_s=info["used_cpu_user"] + info["used_cpu_sys"],
        )

    def per_page(self, before: RedisWork, pages: int) -> dict[str, float]:
        """Return the difference, for each page; `sent` are the commands of clients: a peer sends scripts or plain commands."""
        pages = max(1, pages)
        scripts, commands = self.scripts - before.scripts, self.commands - before.commands
        return {
            "reads_per_page": round((self.reads - before.reads) / pages, 3),
            "sent_per_page": round((scripts or commands) / pages, 3),
            "commands_per_page": round(commands / pages, 2),
            "redis_cpu_us_per_page": round((self.cpu_s - before.cpu_s) * 1e6 / pages, 1),
        }
