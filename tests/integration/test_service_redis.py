"""Which Redis a service works in: the fleet's, unless its project names another one, and then everybody is told."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from redis_components.admin.inspector import CrawlRecords, snapshot
from redis_components.keys import CrawlKeys
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
def test_a_project_that_names_another_redis_keeps_it_and_everybody_is_told(tmp_path: Path, settings: str) -> None:
    with RedisServer() as other:
        place = urlsplit(other.url)
        secret = place.password or ""
        written = settings.format(url=other.url, port=place.port, password=secret)
        told_everywhere(tmp_path, other, written, f"127.0.0.1:{place.port}/0", secret)


def told_everywhere(folder: Path, other: RedisServer, settings: str, place: str, secret: str) -> None:
    with plain_fleet(folder, "books=1", settings=settings, pages=20) as fleet:
        fleet.beat()
        fleet.node()
        fleet.wait_whole("books/0")  # its heartbeat goes to the fleet's Redis, so it is supervised like any other
        theirs = other.client()
        theirs.rpush("books:start_urls", f"{fleet.site}/1")
        wait_until(lambda: theirs.llen("books:items") == 20, lambda: f"it crawls there\n{fleet.said()}")
        wait_known(fleet)
        wait_until(lambda: place in fleet.crawlers()["books/0"].redis, "its record says so")
        status = fleet.trawl("status")
        assert "books/0 crawls in redis://" in status.replace("\n", " ")
        assert place in status
        (service,) = json.loads(fleet.trawl("status", "--json"))["services"]
        assert place in service["redis"]
        (items,) = json.loads(fleet.trawl("items", "--json").splitlines()[0])
        assert place in items["redis"], "0 items wait in the fleet's Redis, which says nothing"
        log = fleet.trawl("logs", "books/0")
        assert "not in the fleet's Redis" in log
        for text in (status, log, json.dumps(service)):
            assert secret not in text
        metrics = fleet.metrics()
        assert 'trawl_crawl_in_another_redis{service="books",spider="books"} 1' in metrics
        assert "collector_request_queue_size{" not in metrics, "an unknown figure is not 0"


def test_another_name_of_the_fleets_redis_is_not_another_redis(tmp_path: Path) -> None:
    settings = 'import os\nREDIS_URL = os.environ["TRAWL_REDIS_URL"].replace("127.0.0.1", "localhost")\n'
    with plain_fleet(tmp_path, "books=1", settings=settings, pages=20) as fleet:
        fleet.beat()
        fleet.node()
        fleet.wait_whole("books/0")
        wait_known(fleet)
        assert CrawlRecords(fleet.redis.client()).all()["books"].redis == ""
        assert fleet.crawlers()["books/0"].redis == ""


def test_another_namespace_is_told_and_found(tmp_path: Path) -> None:
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
        wait_until(lambda: fleet.crawlers()["books/0"].namespace == "monday", "its record says so")
        assert "books/0 crawls in the namespace 'monday'" in fleet.trawl("status")
        assert CrawlRecords(fleet.redis.client()).keys_of("books") == CrawlKeys.for_spider("books", namespace="monday")
