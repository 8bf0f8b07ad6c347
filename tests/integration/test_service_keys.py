"""A service whose spider and settings name keys of their own is seen and handled by everything that looks from outside."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from redis_components.admin.inspector import snapshot
from redis_components.keys import CrawlKeys, CrawlRecord, CrawlRecords
from tests.support.plain_project import PlainFleet, plain_fleet
from tests.support.processes import wait_until
from tests.support.redis_server import RedisServer
from workers.state.keys import FleetKeys

pytestmark = pytest.mark.usefixtures("no_process_left")
TASKS = "notes.taskqueue"
KEYS = CrawlKeys.for_spider(
    "notes",
    namespace="",
    requests="queue:of:notes",
    dupefilter="seen:by:notes",
    start_urls=TASKS,
    items="notes.results",
    stats="counted:by:notes",
)


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[PlainFleet]:
    with plain_fleet(tmp_path, "notes=1", settings="", pages=20) as fleet:
        fleet.beat()
        fleet.node()
        fleet.wait_whole("notes/0")
        wait_until(lambda: "notes" in CrawlRecords(fleet.redis.client()).all(), lambda: f"it is recorded\n{fleet.said()}")
        yield fleet


def service(fleet: PlainFleet) -> dict[str, object]:
    (found,) = json.loads(fleet.trawl("status", "--json"))["services"]
    return dict(found)


def test_its_figures_are_seen_with_and_without_crawlers(fleet: PlainFleet) -> None:
    client = fleet.redis.client()
    assert CrawlRecords(client).keys_of("notes") == replace(KEYS, fed_start_urls="notes:start_urls")
    fleet.crawl(TASKS)
    fleet.wait_count("notes.results", 20)
    wait_until(lambda: snapshot(client, "notes").acked == 20, "every page is done")
    wait_until(lambda: service(fleet)["pages"] == 20, lambda: f"the stats are told; {service(fleet)}")
    assert 'collector_dupefilter_size{service="notes",spider="notes"} 19' in fleet.metrics()

    fleet.trawl("scale", "notes=0")
    fleet.wait_whole()
    wait_until(lambda: service(fleet)["alive"] == 0, lambda: f"its supervisor tells that it is gone; {service(fleet)}")
    for page in (1, 2, 3):
        fleet.crawl(TASKS, page)
    seen = service(fleet)
    assert (seen["start_tasks"], seen["items_waiting"], seen["pages"], seen["alive"]) == (3, 20, 20, 0)
    assert 'collector_task_queue_size{service="notes",spider="notes"} 3' in fleet.metrics()

    # What waits brings crawlers, although none is there that could say so.
    fleet.trawl("autoscale", "notes", "--min", "0", "--max", "1")
    fleet.wait_whole("notes/0", timeout_s=60)
    wait_until(lambda: snapshot(client, "notes").start_tasks == 0, lambda: f"it takes them\n{fleet.said()}")


def test_what_it_gave_up_is_shown_and_replayed(fleet: PlainFleet) -> None:
    client = fleet.redis.client()
    client.rpush(TASKS, json.dumps({"url": f"{fleet.site}/1", "colour": "red"}))
    wait_until(lambda: client.llen(KEYS.dead()) == 1, lambda: f"it is given up\n{fleet.said()}")
    assert "colour" in fleet.trawl("dead")
    fleet.trawl("scale", "notes=0")
    fleet.wait_whole()
    assert fleet.trawl("dead", "replay") == "replayed: notes 1"
    assert (client.llen(KEYS.dead()), client.llen(TASKS)) == (0, 1)


def test_a_pause_reaches_it_also_one_from_before_its_first_start(tmp_path: Path) -> None:
    with plain_fleet(tmp_path, "notes=1", settings="", pages=20) as fleet:
        client = fleet.redis.client()
        fleet.trawl("pause", "notes")
        fleet.beat()
        fleet.node()
        fleet.wait_whole("notes/0")
        wait_until(lambda: client.exists(KEYS.holds()), lambda: f"the pause is where its crawlers look\n{fleet.said()}")
        # It says what it obeys in its log, within one exchange.
        log = tmp_path / "data" / "logs" / "notes-0.log"
        wait_until(lambda: "held now: spider paused" in log.read_text(), lambda: f"it obeys\n{fleet.said()}")
        fleet.crawl(TASKS)
        assert service(fleet)["state"] == "paused"
        fleet.trawl("resume", "notes")
        fleet.wait_count("notes.results", 20)


def test_a_removed_service_shows_what_it_has_left_behind(tmp_path: Path) -> None:
    with plain_fleet(tmp_path, "books=0", settings="") as fleet:
        client = fleet.redis.client()
        CrawlRecords(client, FleetKeys(prefix="trawl:fleet")).write(CrawlRecord(spider="notes", keys=KEYS, max_items=3))
        client.rpush("notes.results", "a", "b", "c")
        services = json.loads(fleet.trawl("status", "--json"))["services"]
        found = {one["service"]: (one["items_waiting"], one["items_backed_up"]) for one in services}
        assert found == {"books": (0, False), "notes": (3, True)}


@pytest.mark.parametrize("broken", [b"", b"{", b'{"spider": "notes"}', b'{"spider": "notes", "keys": {"requests": 5}}', b"\xff"])
def test_a_record_that_cannot_be_read_is_none_and_hides_no_other(broken: bytes) -> None:
    with RedisServer() as server:
        client = server.client()
        records = CrawlRecords(client, FleetKeys(prefix="trawl:fleet"))
        records.write(CrawlRecord(spider="notes", keys=KEYS))
        client.hset("trawl:fleet:crawls", "books", broken)
        assert list(records.all()) == ["notes"]
        assert records.keys_of("books") == CrawlKeys.for_spider("books")
