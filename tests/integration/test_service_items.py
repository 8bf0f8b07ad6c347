"""Items of a service that knows nothing of Trawl: they are its user's, none is lost, and the crawl waits for their consumer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from redis_components.admin.inspector import snapshot
from redis_components.keys import CrawlRecords
from tests.support.items import post, wire
from tests.support.plain_project import KNOWS_THE_FLEET, PlainFleet, plain_fleet
from tests.support.processes import wait_until

pytestmark = pytest.mark.usefixtures("no_process_left")


def wait_for_writer(fleet: PlainFleet) -> None:
    """Until the writer has run once more than now: it has seen what is in Redis at this moment."""
    assert fleet.ask("store_items.delay().get(timeout=60)")
    fleet.ask("store_items.delay().get(timeout=60)")


def test_the_writer_leaves_items_of_a_plain_service_alone(tmp_path: Path) -> None:
    with plain_fleet(tmp_path, "books=1", pages=40) as fleet:
        client = fleet.redis.client()
        client.rpush("books:items", *(f"left by a former crawl {n}" for n in range(100)))  # it has not started yet
        client.rpush("removed:items", "of a service that TRAWL_FLEET does not name any more")
        fleet.beat()
        fleet.node()
        fleet.wait_whole("books/0")
        fleet.crawl("books:start_urls")
        fleet.wait_count("books:items", 140)
        wait_for_writer(fleet)
        assert (client.llen("books:items"), client.llen("books:items:dead"), client.llen("removed:items")) == (140, 0, 1)
        # Any number of consumers may take them, oldest first.
        assert client.blpop(["books:items"], 1)[1] == b"left by a former crawl 0"
        urls = {json.loads(item)["url"] for item in client.lrange("books:items", 99, -1)}
        assert urls == {f"{fleet.site}/{page}" for page in range(1, 41)}


def test_a_hundred_thousand_items_without_a_consumer_stop_the_crawl_and_none_is_lost(tmp_path: Path) -> None:
    with plain_fleet(tmp_path, "shelves=1", pages=170) as fleet:
        client = fleet.redis.client()
        fleet.beat()
        fleet.node()
        fleet.wait_whole("shelves/0")
        fleet.crawl("shelves:start_urls")
        wait_until(lambda: snapshot(client, "shelves").backed_up, lambda: f"items back up\n{fleet.said()}", 100)

        # Pages that were at work end; then nothing moves.
        fleet.wait_nothing_in_flight()
        shot = snapshot(client, "shelves")
        assert shot.bad_items == 0
        assert 100_000 <= shot.items <= 150_000, "the bound, and pages that were begun when it was met, of 1,000 items each"
        assert shot.ready + shot.leased, "there is more to crawl"
        status = fleet.trawl("status")
        assert "shelves starts no page" in status
        metrics = fleet.metrics()
        assert 'trawl_items_backed_up{service="shelves",spider="shelves"} 1' in metrics

        # A consumer comes: the crawl goes on by itself, and each item is there once.
        taken: list[bytes] = []

        def consume() -> int:
            taken.extend(client.lpop("shelves:items", 10_000) or [])
            return len(taken)

        wait_until(lambda: consume() >= 170_000, lambda: f"all items come; {len(taken)}\n{fleet.said()}", 100)
        numbers = {(item["url"], item["number"]) for item in map(json.loads, taken)}
        assert (len(taken), len(numbers)) == (170_000, 170_000)


def test_what_the_forum_writer_refuses_is_kept_stops_the_crawl_and_goes_back(tmp_path: Path) -> None:
    settings = KNOWS_THE_FLEET + "REDIS_ITEMS_MAX_WAITING = 20\n"
    with plain_fleet(tmp_path, "books=1", pages=60, settings=settings) as fleet:
        project = tmp_path / "project" / "plain_spiders.py"
        project.write_text(project.read_text().replace('name = "books"', 'name = "books"\n    item_consumer = "forum_writer"'))
        client = fleet.redis.client()
        fleet.beat()
        fleet.node()
        fleet.wait_whole("books/0")
        wait_until(lambda: "books" in CrawlRecords(client).all(), "its record is there")
        client.rpush("books:items", wire(post("p1")))
        wait_until(lambda: not client.exists("books:items"), lambda: f"what can be stored is stored\n{fleet.said()}")
        fleet.crawl("books:start_urls")
        wait_until(lambda: snapshot(client, "books").backed_up, lambda: f"refused items back up\n{fleet.said()}", 60)
        fleet.wait_nothing_in_flight()
        wait_for_writer(fleet)
        shot = snapshot(client, "books")
        assert (shot.items, shot.bad_items >= 20, shot.bad_items < 60) == (0, True, True)
        assert "kind" in fleet.trawl("dead", "items", "books")

        # Whoever gives the items back to a list of their own has them all.
        fleet.trawl("scale", "books=0")
        fleet.wait_whole()
        assert snapshot(client, "books").backed_up, "it is seen without a crawler, too"
        fleet.trawl("dead", "items", "purge", "books", "--yes")
        assert snapshot(client, "books").bad_items == 0


@pytest.mark.parametrize("wrong", ["nobody", "forum writer"])
def test_a_consumer_that_does_not_exist_is_said_in_one_line(tmp_path: Path, wrong: str) -> None:
    with plain_fleet(tmp_path, "books=1") as fleet:
        project = tmp_path / "project" / "plain_spiders.py"
        project.write_text(project.read_text().replace('name = "books"', f'name = "books"\n    item_consumer = "{wrong}"'))
        crawler = fleet.program("crawler", "-m", "workers.crawler", "books")
        assert crawler.wait() == 2
        assert f"trawl: books: books: item_consumer = {wrong!r} does not exist; known: 'forum_writer'" in crawler.said()
