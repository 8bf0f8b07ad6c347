"""A fleet of a Scrapy project where neither the forum crawl nor the reader of pages can be imported, in real processes."""

from __future__ import annotations

import json
import os
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess, TimeoutExpired

import pytest
from msgspec.structs import replace

from redis_components.embedded.files import free_port
from tests.support import warm_start
from tests.support.fleet import ROOT
from tests.support.processes import none_left, wait_until
from tests.support.redis_server import RedisServer
from tests.support.watched_site import Page, WatchedSite
from workers.state.holds import Breakers
from workers.state.jobs import Jobs, JobState

ABSENT = '''
import sys

class Absent:
    """Finds neither of the two packages, in any process of the fleet."""

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("forums", "forum_reader"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
'''
SPIDERS = """
from redis_components.spiders import RedisSpider

class Books(RedisSpider):
    name = "books"

    def parse(self, response):
        yield {"url": response.url}
"""
SETTINGS = """
from workers.settings import *

SPIDER_MODULES = ["shop_spiders"]
DOWNLOADER_MIDDLEWARES["workers.raw_pages.any_spider.KeepRawPages"] = 562
RAW_PAGES_KEEP_DAYS = 2
ROBOTSTXT_OBEY = False
RETRY_ENABLED = False
"""
PAGES = 12


class Fleet:
    """Programs of one fleet; what each has printed is in a file."""

    def __init__(self, folder: Path, redis: RedisServer) -> None:
        self.data, self.redis, self._folder = folder / "data", redis, folder
        (folder / "sitecustomize.py").write_text(ABSENT)
        (folder / "shop_spiders.py").write_text(SPIDERS)
        (folder / "shop_settings.py").write_text(SETTINGS)
        fleets = {name: value for name, value in os.environ.items() if not name.startswith("TRAWL_")}
        self.environment = {
            **fleets,
            "PYTHONPATH": str(folder),
            "SCRAPY_SETTINGS_MODULE": "shop_settings",
            "TRAWL_REDIS_URL": redis.url,
            "TRAWL_DATA_DIR": str(self.data),
            "TRAWL_ENV_FILE": "",
            "TRAWL_FLEET": "books=1",
            "TRAWL_NODE_CRAWLERS": "2",
            "TRAWL_ALLOW_PRIVATE": "1",
        }
        self._running: list[warm_start.Popen] = []

    def start(self, name: str, *arguments: str) -> None:
        with (self._folder / f"{name}.log").open("wb") as log:
            command = [sys.executable, "-m", *arguments]
            how = {"cwd": ROOT, "env": self.environment, "startup": str(self._folder)}
            self._running.append(warm_start.Popen(command, **how, stdout=log, stderr=log))

    def trawl(self, *arguments: str) -> CompletedProcess[str]:
        command = [sys.executable, "-m", "cli.main", *arguments]
        how = {"cwd": ROOT, "env": self.environment, "startup": str(self._folder)}
        return warm_start.run(command, **how, capture_output=True, text=True, timeout=60, check=False)

    def printed(self) -> str:
        return "\n".join(f"--- {log.name}\n{log.read_text(errors='replace')[-3000:]}" for log in self._folder.glob("*.log"))

    def end(self) -> None:
        for one in self._running:
            one.terminate()
        for one in self._running:
            try:
                one.wait(60)
            except TimeoutExpired:
                one.kill()
                one.wait()


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    with RedisServer() as redis, none_left(("TRAWL_DATA_DIR", str(tmp_path / "data")), timeout_s=60):
        found = Fleet(tmp_path, redis)
        try:
            yield found
        finally:
            found.end()


def urls(path: Path) -> set[str]:
    return {json.loads(line)["url"] for line in path.read_bytes().splitlines()} if path.exists() else set()


@pytest.mark.processes
def test_it_crawls_consumes_holds_hosts_keeps_pages_runs_jobs_and_shows_all_of_it(fleet: Fleet) -> None:
    client, port, items = fleet.redis.client(), free_port(), fleet.data / "books.jsonl"
    breakers = Breakers(client)
    with WatchedSite() as ill, WatchedSite() as well:
        ill.answer = lambda path: Page("<p>No", 403, {"Retry-After": "900"})
        well.answer = lambda path: Page("<p>A book")
        host = ill.url.removeprefix("http://")
        fleet.start("beat", "celery", "-A", "tasks", "beat")
        fleet.start("worker", "celery", "-A", "tasks", "worker", "-n", "a@test")
        fleet.start("exporter", "monitoring.exporter", "--port", str(port))
        declared = fleet.trawl("services", "add", "books", "--consumer", f"jsonl:{items}")
        assert declared.returncode == 0, declared.stderr

        client.rpush("books:start_urls", *(f"{site.url}/{page}" for page in range(PAGES) for site in (ill, well)))
        wait_until(lambda: host in breakers.open_ones(), lambda: f"the host's breaker opens\n{fleet.printed()}")
        opened = breakers.open_ones()[host]
        assert (opened.cause, opened.reason, opened.kind) == ("refused", "refused (HTTP 403)", "host")
        assert opened.next_probe_at - opened.since == 900.0, "as long as the site has asked for"
        pages = {f"{well.url}/{page}" for page in range(PAGES)}
        wait_until(lambda: urls(items) == pages, lambda: f"the other host's items are in the file\n{fleet.printed()}")
        kept = fleet.data / "raw" / "books"  # a thread of the crawler writes them
        wait_until(lambda: list(kept.glob("*/*.warc*")), lambda: f"raw pages are kept\n{fleet.printed()}")

        job = fleet.trawl("job", "start", "books", "--urls", str(_written(fleet, f"{well.url}/job")))
        assert job.returncode == 0, job.stderr
        status = json.loads(fleet.trawl("status", "--json").stdout)
        assert (status["running"], status["unreadable"]) == (True, {})
        assert [one["site"] for one in status["sites"]["breakers"]] == [host]
        assert "books" in {one["service"] for one in status["services"]}
        wait_until(lambda: _get(port, "/livez") == "ok\n", lambda: f"the exporter answers\n{fleet.printed()}")
        metrics = _get(port, "/metrics")
        assert f'trawl_site_breaker{{cause="refused",site="{host}"}} 1.0' in metrics
        page = _get(port, "/")
        assert host in page
        assert "/dead" in page
        assert "/sites" not in page, "pages of the forum crawl are not offered"
        assert "refused (HTTP 403)" in _get(port, "/")
        assert "Crawlers" in _get(port, "/service/books")

        ill.answer = well.answer
        assert breakers.put(host, replace(breakers.open_ones()[host], next_probe_at=0.0))
        wait_until(lambda: urls(items) >= pages | {f"{ill.url}/{page}" for page in range(PAGES)}, fleet.printed)
        (job_id,) = (word for word in job.stdout.split() if word)
        wait_until(lambda: Jobs(client).all()[job_id].state is JobState.FINISHED, fleet.printed)
        wait_until(lambda: f"{well.url}/job" in urls(items), lambda: f"the consumer takes its item\n{fleet.printed()}")
        raw = 'trawl_raw_pages_total{service="books"'  # those of before are counted at the next page, and told after its items
        wait_until(lambda: raw in _get(port, "/metrics"), lambda: f"raw pages are counted\n{fleet.printed()}")

        refused = fleet.trawl("seed")
        assert (refused.returncode, len(refused.stderr.splitlines())) == (2, 1), refused.stderr
        assert "pip install trawl-fleet trawl-reader" in refused.stderr
        assert fleet.trawl("config", "check").returncode == 0
        assert "no-such-name" in fleet.trawl("no-such-name").stderr


def _written(fleet: Fleet, *lines: str) -> Path:
    file = fleet.data / "urls.txt"
    file.write_text("\n".join(lines))
    return file


def _get(port: int, path: str) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as answer:
        body: str = answer.read().decode()
        return body
