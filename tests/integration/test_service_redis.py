"""Which Redis a service works in: the fleet's; a project that names another one is refused."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import pytest

from redis_components.admin.inspector import snapshot
from redis_components.keys import CrawlKeys, CrawlRecords
from tests.support.plain_project import PlainFleet, plain_fleet
from tests.support.processes import wait_until
from tests.support.redis_server import RedisServer

pytestmark = pytest.mark.usefixtures("no_process_left")


def wait_known(fleet: PlainFleet) -> None:
    records = CrawlRecords(fleet.redis.client())
    wait_until(lambda: "books" in records.all(), lambda: f"where the crawl is, is known\n{fleet.said()}")


def test_a_project_that_names_no_redis_crawls_in_the_fleets(tmp_path: Path) -> None:
    with plain_fleet(tmp_path, "books=1", settings="", pages=20) as fleet:
        fleet.beat()
        fleet.node()
        fleet.wait_whole("books/0")
        fleet.crawl("books:start_urls")
        fleet.wait_count("books:items", 20)
        wait_known(fleet)
        assert "not in the fleet's" not in fleet.trawl("status")


def test_a_project_that_names_no_namespace_crawls_in_the_fleets(tmp_path: Path) -> None:
    with plain_fleet(tmp_path, "books=1", settings="", pages=20, TRAWL_NAMESPACE="job") as fleet:
        fleet.program("crawler", "-m", "workers.crawler", "books")
        fleet.crawl("job:books:start_urls")
        fleet.wait_count("job:books:items", 20)


@pytest.mark.parametrize(
    "settings",
    [
        "REDIS_URL = '{url}'\n",
        "REDIS_HOST = '127.0.0.1'\nREDIS_PORT = {port}\nREDIS_PARAMS = {{'password': '{password}'}}\n",
        "REDIS_PARAMS = {{'host': '127.0.0.1', 'port': {port}, 'password': '{password}'}}\n",
    ],
    ids=["url", "host and port", "params"],
)
def test_a_project_that_names_another_redis_is_refused_and_named(tmp_path: Path, settings: str) -> None:
    with RedisServer() as other:
        place = urlsplit(other.url)
        secret = place.password or ""
        written = settings.format(url=other.url, port=place.port, password=secret)
        with plain_fleet(tmp_path, "books=1", settings=written, pages=20) as fleet:
            fleet.beat()
            fleet.node()
            wait_until(lambda: "not restarted" in fleet.said(), fleet.said)
            status = fleet.shows("its project names another Redis", "status")  # told by a heartbeat, after the line in the log
            assert f"127.0.0.1:{place.port}" in status
            assert secret not in status
            assert not other.client().keys("books:*")


def test_another_name_of_the_fleets_redis_is_not_another_redis(tmp_path: Path) -> None:
    settings = 'import os\nREDIS_URL = os.environ["TRAWL_REDIS_URL"].replace("127.0.0.1", "localhost")\n'
    with plain_fleet(tmp_path, "books=1", settings=settings, pages=20) as fleet:
        fleet.beat()
        fleet.node()
        fleet.wait_whole("books/0")
        wait_known(fleet)


def test_another_namespace_is_found(tmp_path: Path) -> None:
    settings = 'REDIS_NAMESPACE = "monday"\n'
    with plain_fleet(tmp_path, "books=1", settings=settings, pages=20) as fleet:
        fleet.beat()
        fleet.node()
        fleet.wait_whole("books/0")
        wait_known(fleet)
        fleet.crawl("monday:books:start_urls")
        fleet.wait_count("monday:books:items", 20)
        shot = snapshot(fleet.redis.client(), "books")
        assert (shot.items, shot.fingerprints) == (20, 19), "a start page passes the dupefilter"
        assert CrawlRecords(fleet.redis.client()).keys_of("books") == CrawlKeys.for_spider("books", namespace="monday")
