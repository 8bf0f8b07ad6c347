"""A project written for scrapy-redis gives the same items on both packages; only the package's name in its files differs.

The site knows which items there are. That scrapy-redis finds the same is checked where `make peers` has installed it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
import redis

from tests.support.crawl import link_site
from tests.support.redis_server import RedisServer

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
    hops = spider in ("follow", "plain")
    return [{"number": n, "found_by": spider, "depth": n.bit_length() - 1 if hops else 0, "stamp": "catalogue"} for n in ALL]


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

        def crawl(spider: str) -> Found:
            crawled = run("-m", "scrapy", "crawl", spider)
            assert crawled.returncode == 0, crawled.stderr
            counts = {key: server.client().llen(key) for key in SPIDERS[spider]}
            taken = run("process_items.py", server.url, *SPIDERS[spider])
            assert taken.returncode == 0, taken.stderr
            return Found(items=[json.loads(line) for line in taken.stdout.splitlines()], by_key=counts, log=crawled.stderr)

        with ThreadPoolExecutor(len(SPIDERS)) as pool:
            return dict(zip(SPIDERS, pool.map(crawl, SPIDERS), strict=True))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with link_site(tmp_path_factory.mktemp("site"), pages=PAGES) as url:
        yield url


@pytest.fixture(scope="module")
def ours(site: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Found]:
    return run_project(OURS, site, tmp_path_factory.mktemp("ours"))


@pytest.fixture(scope="module")
def theirs(site: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Found]:
    if not PEERS.exists():
        pytest.skip("scrapy-redis is not installed: make peers")
    return run_project(THEIRS, site, tmp_path_factory.mktemp("theirs"))


def by_number(found: Found) -> list[dict[str, object]]:
    return sorted(found.items, key=lambda item: (item["number"], item["depth"]))


@pytest.mark.parametrize("spider", SPIDERS)
def test_a_scrapy_redis_project_finds_every_item_when_only_the_name_of_the_package_changes(
    spider: str, ours: dict[str, Found]
) -> None:
    once = {json.dumps(item, sort_keys=True) for item in ours[spider].items}
    assert once == {json.dumps(item, sort_keys=True) for item in expected(spider)}, ours[spider].log


@pytest.mark.parametrize("spider", SPIDERS)
def test_scrapy_redis_itself_finds_the_same_items(spider: str, ours: dict[str, Found], theirs: dict[str, Found]) -> None:
    assert by_number(ours[spider]) == by_number(theirs[spider]), f"{ours[spider].log}\n\n{theirs[spider].log}"


def test_the_items_are_under_the_keys_that_the_project_chose(ours: dict[str, Found]) -> None:
    assert ours["plain"].by_key == {"plain:items:odd": PAGES // 2, "plain:items:even": PAGES // 2}
