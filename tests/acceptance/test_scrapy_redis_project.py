"""A project written for scrapy-redis gives the same items on both packages; only the package's name in its files differs.

The site knows which items there are. That scrapy-redis finds the same is checked where `make peers` has installed it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
import redis
from scrapy import Request

from tests.support import warm_start
from tests.support.crawl import hits_of, link_site
from tests.support.redis_server import RedisServer
from tests.support.scrapy_redis_data import put_fields, put_fingerprints

PROJECT = Path(__file__).parent / "scrapy_redis_project"
PEERS = Path(__file__).parents[2] / ".venv-peers/bin/python"
PAGES = 60
TIMEOUT_S = 90
ALL = range(1, PAGES + 1)
SPIDERS = {
    "follow": ["follow:items"],
    "rules": ["rules:items"],
    "numbers": ["numbers:items"],
    "batches": ["batches:items"],
    "plain": ["plain:items:odd", "plain:items:even"],
}


@dataclass(frozen=True, kw_only=True)
class Package:
    """The package that the project runs on, and the Python that has it."""

    name: str
    python: Path


OURS = Package(name="redis_components", python=Path(sys.executable))
THEIRS = Package(name="scrapy_redis", python=PEERS)


@dataclass(frozen=True, kw_only=True)
class Found:
    """What one spider left behind."""

    items: list[dict[str, object]]
    by_key: dict[str, int]
    log: str


def expected(spider: str) -> list[dict[str, object]]:
    """The items of a spider, from what is known of the site: page n is linked to by page n // 2 alone."""
    numbers = [1, *ALL] if spider == "follow" else [*ALL]  # it has page 1 in two start messages
    hops = spider in ("follow", "plain")
    return [{"number": n, "found_by": spider, "depth": n.bit_length() - 1 if hops else 0, "stamp": "catalogue"} for n in numbers]


def in_order(item: dict[str, object]) -> str:
    return json.dumps(item, sort_keys=True)


def seed(client: redis.Redis, site: str) -> None:
    """Start messages of each kind that the project reads."""
    client.rpush("follow:start_urls", f"{site}/1", json.dumps({"url": f"{site}/1", "meta": {"hops": 0}}))
    client.rpush("rules:begin", f"{site}/1")
    client.sadd("numbers:ranges", "1-20", *map(str, range(21, 60)), "60")
    client.rpush("batches:ranges", *(f"{n}-{n + 9}" for n in range(1, PAGES, 10)))


def copied(package: Package, folder: Path) -> Path:
    """The project on that package: its name is the only thing that changes."""
    project = folder / package.name
    shutil.copytree(PROJECT, project, ignore=shutil.ignore_patterns("__pycache__"))
    for path in project.rglob("*.py"):
        path.write_text(path.read_text().replace("scrapy_redis", package.name))
    return project


def run_project(package: Package, site: str, folder: Path) -> dict[str, Found]:
    """Crawl with each spider, then take the items out with the project's own script."""
    project = copied(package, folder)
    with RedisServer() as server:
        seed(server.client(), site)
        environment = {**os.environ, "CATALOGUE_SITE": site, "CATALOGUE_REDIS": server.url}

        def run(*command: str) -> subprocess.CompletedProcess[str]:
            return subprocess.run(
                [package.python, *command], cwd=project, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S
            )

        def crawl(spider: str) -> str:
            crawled = run("-m", "scrapy", "crawl", spider)
            assert crawled.returncode == 0, crawled.stderr
            return crawled.stderr

        with ThreadPoolExecutor(len(SPIDERS)) as pool:
            logs = dict(zip(SPIDERS, pool.map(crawl, SPIDERS), strict=True))
        keys = [key for one in SPIDERS.values() for key in one]
        sizes = {key: server.client().llen(key) for key in keys}
        taken = run("process_items.py", server.url, *keys)
    assert taken.returncode == 0, taken.stderr
    items = [json.loads(line) for line in taken.stdout.splitlines()]
    return {
        spider: Found(
            items=[item for item in items if item["found_by"] == spider],
            by_key={key: sizes[key] for key in SPIDERS[spider]},
            log=logs[spider],
        )
        for spider in SPIDERS
    }


@pytest.mark.parametrize("package", [OURS, THEIRS], ids=lambda package: package.name)
def test_the_project_gives_the_same_items_on_both_packages(package: Package, tmp_path: Path) -> None:
    if not package.python.exists():
        pytest.skip("scrapy-redis is not installed: make peers")
    with link_site(tmp_path, pages=PAGES) as site:
        found = run_project(package, site, tmp_path)
    for spider, one in found.items():
        assert sorted(one.items, key=in_order) == sorted(expected(spider), key=in_order), one.log
    assert found["plain"].by_key == {"plain:items:odd": PAGES // 2, "plain:items:even": PAGES // 2}


# a crawl that scrapy-redis began

BEGUN = range(1, 13)  # pages that it has fetched
FOUND = range(2, 26)  # and those that they link to


def begin_without_scrapy_redis(client: redis.Redis, site: str) -> None:
    """What `FollowSpider` leaves on scrapy-redis when it is stopped after the first pages."""
    put_fingerprints(client, "follow:dupefilter", [Request(f"{site}/{n}") for n in FOUND])
    waiting = [
        Request(f"{site}/{n}", priority=1 - n.bit_length(), meta={"hops": n.bit_length() - 1}, cb_kwargs={"shown": f"/{n}"})
        for n in FOUND
        if n not in BEGUN
    ]
    put_fields(client, "follow:requests", [(request, {"callback": "parse_linked"}) for request in waiting])


def begin_on_scrapy_redis(client: redis.Redis, site: str, folder: Path, environment: dict[str, str]) -> None:
    """The same, by scrapy-redis itself."""
    client.rpush("follow:start_urls", f"{site}/1")
    subprocess.run(
        [PEERS, "-m", "scrapy", "crawl", "follow", "-s", f"CLOSESPIDER_PAGECOUNT={len(BEGUN)}"],
        cwd=copied(THEIRS, folder),
        env=environment,
        check=True,
        capture_output=True,
        timeout=TIMEOUT_S,
    )


@pytest.mark.parametrize("begun_by", ["made by the test", "scrapy-redis"])
def test_a_crawl_that_scrapy_redis_began_is_imported_and_fetches_exactly_what_was_left(begun_by: str, tmp_path: Path) -> None:
    if begun_by == "scrapy-redis" and not PEERS.exists():
        pytest.skip("scrapy-redis is not installed: make peers")
    with RedisServer() as server, link_site(tmp_path, pages=PAGES) as site:
        environment = {**os.environ, "CATALOGUE_SITE": site, "CATALOGUE_REDIS": server.url}
        client = server.client()
        if begun_by == "scrapy-redis":
            begin_on_scrapy_redis(client, site, tmp_path, environment)
        else:
            begin_without_scrapy_redis(client, site)
        begun = set(hits_of(site)) or set(BEGUN)
        project = copied(OURS, tmp_path)
        imported = warm_start.run(
            [sys.executable, "-m", "cli.main", "migrate", "scrapy-redis", "follow", "--allow-pickle", "--watch", "0.2"],
            cwd=project,
            env=environment,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
        )
        assert imported.returncode == 0, imported.stderr
        setting = 'REQUEST_FINGERPRINTER_CLASS = "redis_components.fingerprint.ScrapyRedisFingerprinter"'
        assert f"set {setting}" in imported.stdout
        with (project / "catalogue/settings.py").open("a") as settings:
            settings.write(f"{setting}\n")
        client.rpush("follow:start_urls", f"{site}/6")  # once more, but what it links to was found before
        crawled = warm_start.run(
            [sys.executable, "-m", "scrapy.cmdline", "crawl", "follow"],
            cwd=project,
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
            timeout=TIMEOUT_S,
        )
        assert len(begun) < PAGES / 2
        fetched = hits_of(site)
        if begun_by == "scrapy-redis":
            assert fetched == {n: 2 if n == 6 else 1 for n in ALL}, crawled.stderr
        else:
            assert fetched == {n: 1 for n in ALL if n not in begun or n == 6}, crawled.stderr
