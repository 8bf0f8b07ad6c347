"""Crawls by frameworks that are not on Scrapy's scheduler interface, for `benchmarks/frontier/peers_table.py`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import urllib.parse
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import redis

from benchmarks.peers.environment import ROOT, interpreter
from redis_components.connection import get_redis
from redis_components.embedded.die_with_parent import tied
from redis_components.embedded.files import free_port
from tests.support.crawl import link_site
from tests.support.processes import wait_until

from .report import BenchmarkFailed

SCRAPYD_SPIDER = """
import json, sys
from pathlib import Path
import scrapy
sys.path.insert(0, {peers!r})
from other_frameworks import children

JOB = json.loads(Path({job!r}).read_text())

class TreeSpider(scrapy.Spider):
    name = "tree"
    start_urls = [JOB["site"] + "/1"]

    def parse(self, response):
        for url in children(response.url, JOB):
            yield scrapy.Request(url)
"""
SCRAPYD_SETTINGS = """
SPIDER_MODULES = ["bench_spider"]
CONCURRENT_REQUESTS = CONCURRENT_REQUESTS_PER_DOMAIN = 32
CONCURRENT_ITEMS = 8
COOKIES_ENABLED = TELNETCONSOLE_ENABLED = REMOTE_CONTROL_ENABLED = False
LOG_LEVEL = "WARNING"
"""


@dataclass(kw_only=True)
class Crawled:
    """A site, and what one peer needs to crawl it."""

    folder: Path
    peer: str
    pages: int
    site: str
    redis_url: str
    scrapyd: Scrapyd | None = None

    @classmethod
    @contextmanager
    def on(cls, folder: Path, peer: str, pages: int, latency_s: float, redis_url: str) -> Iterator[Self]:
        """Run the site."""
        (folder / "storage").mkdir()
        with link_site(folder, pages=pages, latency_s=latency_s) as site:
            crawled = cls(folder=folder, peer=peer, pages=pages, site=site, redis_url=redis_url)
            try:
                yield crawled
            finally:
                if crawled.scrapyd is not None:
                    crawled.scrapyd.stop()

    @property
    def handled(self) -> Path:
        """The file with a line for each page that a callback has handled."""
        return self.folder / "handled"

    def client(self) -> redis.Redis:
        """Return a client of the peer's Redis."""
        return get_redis(url=self.redis_url)

    def lines(self) -> list[str]:
        """Return the pages that were handled, in order."""
        return self.handled.read_text().split() if self.handled.exists() else []

    def outcome(self) -> tuple[int, int]:
        """Return how many pages were never handled, and how often one was handled again."""
        counted = Counter(self.lines())
        return self.pages - len(counted), sum(counted.values()) - len(counted)

    def _of_site(self, path: str) -> Any:
        with urllib.request.urlopen(f"{self.site}{path}", timeout=60) as response:  # noqa: S310 - of this machine
            return json.load(response)

    def times(self) -> tuple[float, float]:
        """Return when the site was asked for the first page and for the last one. Raises BenchmarkFailed where it was not."""
        agents = self._of_site("/crawlers").values()
        if not agents:
            raise BenchmarkFailed(f"{self.peer}: no page was asked for")
        return min(first for first, _ in agents), max(last for _, last in agents)

    def reach(self, pages: int, process: Any) -> None:
        """Wait until so many pages were asked for."""
        wait_until(
            lambda: sum(self._of_site("/hits").values()) >= pages or process.process.poll() is not None,
            f"{self.peer} has asked for {pages} pages",
            120,
        )

    def calls(self) -> int:
        """Return how often clients have called Redis: the reads of its sockets."""
        if not self.redis_url:
            return 0
        with self.client() as client:
            return int(client.info("stats")["total_reads_processed"])

    def stored_bytes(self) -> int:
        """Return the size of what is stored: in Redis, or in files."""
        if self.redis_url:
            with self.client() as client:
                return int(client.info("memory")["used_memory"])
        return sum(one.stat().st_blocks * 512 for one in (self.folder / "storage").rglob("*") if one.is_file())

    def job(self, mode: str) -> Path:
        """Write the job's file."""
        path = self.folder / "job.json"
        job = {"peer": self.peer, "mode": mode, "pages": self.pages, "site": self.site, "redis_url": self.redis_url}
        path.write_text(json.dumps({**job, "folder": str(self.folder / "storage"), "handled": str(self.handled)}))
        return path


class ForeignProcess:
    """One process of feapder or Crawlee."""

    def __init__(self, crawled: Crawled, mode: str) -> None:
        script = ROOT / "benchmarks" / "peers" / "other_frameworks.py"
        self._log = (crawled.folder / "log").open("ab")
        command = tied(str(interpreter(crawled.peer.partition(",")[0])), str(script), str(crawled.job(mode)))
        self.process = subprocess.Popen(command, cwd=crawled.folder / "storage", stdout=self._log, stderr=self._log)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        self._log.close()


class Scrapyd:
    """A scrapyd with its default configuration, and a project with the spider."""

    def __init__(self, crawled: Crawled) -> None:
        storage, self._port = crawled.folder / "storage", free_port()
        (storage / "scrapy.cfg").write_text(f"[settings]\ndefault = bench_settings\n[scrapyd]\nhttp_port = {self._port}\n")
        (storage / "bench_settings.py").write_text(SCRAPYD_SETTINGS)
        peers = str(ROOT / "benchmarks" / "peers")
        (storage / "bench_spider.py").write_text(SCRAPYD_SPIDER.format(peers=peers, job=str(crawled.job("crawl"))))
        log = crawled.folder / "log"
        command = tied(str(interpreter("scrapyd")), "-m", "scrapyd")
        with log.open("ab") as out:
            self.process = subprocess.Popen(command, cwd=storage, stdout=out, stderr=out, start_new_session=True)
        wait_until(self._listens, lambda: log.read_text()[-2000:], 60)

    def _listens(self) -> bool:
        with suppress(OSError):
            return bool(self.call("daemonstatus.json"))
        return False

    def call(self, path: str, **form: str) -> Any:
        """Return an answer of its API."""
        data = urllib.parse.urlencode(form).encode() if form else None
        with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/{path}", data=data, timeout=60) as response:
            return json.load(response)

    def stop(self) -> None:
        """End it, and the jobs that it has started."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


class ScrapydJob:
    """A job of the scrapyd of this crawl; at rest none, but the daemon."""

    def __init__(self, crawled: Crawled, mode: str, *, jobdir: bool) -> None:
        self._scrapyd = crawled.scrapyd = crawled.scrapyd or Scrapyd(crawled)
        self.process: Any = self
        if mode == "rest":
            self.process = self._scrapyd.process
            return
        settings = {"setting": f"JOBDIR={crawled.folder / 'jobdir'}"} if jobdir else {}
        self._job = self._scrapyd.call("schedule.json", project="default", spider="tree", **settings)["jobid"]

    def _state(self, state: str) -> dict[str, Any] | None:
        jobs = self._scrapyd.call("listjobs.json")[state]
        return next((one for one in jobs if one["id"] == self._job), None)

    def poll(self) -> int | None:
        """Return 0 once the job has ended."""
        return 0 if self._state("finished") else None

    def wait(self, timeout: float = 60) -> None:
        """Wait for the job's end."""
        wait_until(lambda: self.poll() is not None, "the job ends", timeout, every_s=0.2)

    def kill(self) -> None:
        """Kill the job's process."""
        if running := self._state("running"):
            os.kill(int(running["pid"]), signal.SIGKILL)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the daemon to the crawl, which stops it."""
