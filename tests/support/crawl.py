"""Real `scrapy crawl` processes on the link site."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import redis

from redis_components.admin.inspector import snapshot
from redis_components.connection import get_redis
from redis_components.keys import CrawlKeys
from tests.support import warm_start
from tests.support.processes import wait_until
from tests.support.scrapy_command import crawl_command

ROOT = Path(__file__).parents[2]


@dataclass(kw_only=True)
class Crawl:
    """One crawl: its site, its Redis, and the processes that work on it."""

    site: str
    redis_url: str
    folder: Path
    pages: int
    spider: str = "links"
    namespace: str = ""
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def keys(self) -> CrawlKeys:
        return CrawlKeys.for_spider(self.spider, namespace=self.namespace)

    def client(self) -> redis.Redis:
        return get_redis(url=self.redis_url)

    def seed(self, *tasks: str) -> None:
        with self.client() as client:
            client.rpush(self.keys.start_tasks(), *(tasks or (f"{self.site}/1",)))

    def start(self, *arguments: str, **settings: object) -> subprocess.Popen[bytes]:
        """A new crawler process; `arguments` are more of `scrapy crawl`'s; its log is in `log()`."""
        settings = {"REDIS_NAMESPACE": self.namespace, **settings}
        options = [part for name, value in settings.items() for part in ("-s", f"{name}={value}")]
        environment = {
            **os.environ,
            "TRAWL_REDIS_URL": self.redis_url,
            "SCRAPY_SETTINGS_MODULE": "tests.support.link_settings",
            "PYTHONPATH": str(ROOT),
        }
        with (self.folder / f"crawler-{len(self.processes)}.log").open("wb") as log:
            process = warm_start.Popen(
                crawl_command(self.spider, *arguments, *options),
                cwd=ROOT,
                env=environment,
                stdout=log,
                stderr=log,
            )
        self.processes.append(process)
        return process

    @contextmanager
    def kept_open(self) -> Iterator[redis.Redis]:
        """No crawler ends for want of work meanwhile: as if another process held a start task."""
        with self.client() as client:
            client.hincrby(self.keys.counters(), "leased_tasks", 1)
            yield client
            client.hincrby(self.keys.counters(), "leased_tasks", -1)

    def wait_for(self, crawlers: int) -> None:
        """Until so many crawlers are at work, however long the last of them takes to start."""
        with self.kept_open() as client:
            wait_until(
                lambda: snapshot(client, self.spider, self.keys).owners == crawlers,
                lambda: f"{crawlers} crawlers are there\n{self.log()}",
                60,
            )

    def finish(self, timeout_s: float = 60) -> None:
        """Wait until every process has ended by itself."""
        for process in self.processes:
            wait_until(lambda process=process: process.poll() is not None, lambda: f"the crawl ends\n{self.log()}", timeout_s)  # type: ignore[misc]

    def log(self) -> str:
        return "\n".join(path.read_text(errors="replace") for path in sorted(self.folder.glob("crawler-*.log")))

    def hits(self) -> dict[int, int]:
        """How often the site served each page."""
        return hits_of(self.site)

    def items(self) -> list[int]:
        """The page numbers of the items that are stored."""
        with self.client() as client:
            stored = client.lrange(self.keys.item_stream(), 0, 100_000)
        return sorted(int(json.loads(item)["url"].rpartition("/")[2]) for item in stored)

    def missing(self) -> tuple[list[int], list[int]]:
        """Pages never fetched, and pages without an item."""
        everything = set(range(1, self.pages + 1))
        return sorted(everything - set(self.hits())), sorted(everything - set(self.items()))


def ask_site(site: str, path: str, *, post: bool = False) -> Any:
    """What the site of links answers, from JSON."""
    request = urllib.request.Request(f"{site}/{path}", method="POST" if post else "GET")
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def hits_of(site: str) -> dict[int, int]:
    """How often the site served each page."""
    return {int(page): count for page, count in ask_site(site, "hits").items()}


@contextmanager
def link_site(folder: Path, *, pages: int, latency_s: float = 0.0) -> Iterator[str]:
    """The URL of a site of `pages` pages, stopped at the end."""
    port_file = folder / "port.json"
    options = ["--pages", str(pages), "--latency", str(latency_s)]
    site = warm_start.Popen([sys.executable, "-m", "tests.support.link_site", str(port_file), *options], cwd=ROOT)
    try:
        wait_until(port_file.exists, "the site listens")
        yield f"http://127.0.0.1:{port_file.read_text()}"
    finally:
        site.kill()
        site.wait()


@contextmanager
def crawl(
    redis_url: str,
    folder: Path,
    *,
    pages: int = 300,
    latency_s: float = 0.0,
    spider: str = "links",
    namespace: str = "",
) -> Iterator[Crawl]:
    """A site of `pages` pages and a crawl on it; everything is stopped at the end."""
    with link_site(folder, pages=pages, latency_s=latency_s) as site:
        begun = Crawl(site=site, redis_url=redis_url, folder=folder, pages=pages, spider=spider, namespace=namespace)
        try:
            yield begun
        finally:
            for process in begun.processes:
                process.kill()
                process.wait()
