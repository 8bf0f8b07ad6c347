"""Faults made for real in a fleet that is well, judged from outside: `trawl status`, the page, `/readyz` of exporter and API."""

from __future__ import annotations

import html
import json
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
import redis

from cli.access import redis_client as client_of
from fleet_operations.consumers.consume import consume
from fleet_operations.consumers.database_rows import DatabaseRows
from forums.storage import StorageError
from forums.writer.store import store
from monitoring.api.access import Tokens
from monitoring.api.routes import create_api
from monitoring.app import create_app
from monitoring.source import Source
from redis_components.embedded.files import free_port
from redis_components.items.stream import ItemStream
from redis_components.keys import CrawlKeys
from tests.integration.test_api import READ, Api
from tests.support.processes import wait_until
from tests.support.redis_server import RedisServer
from tests.support.trawl_command import Trawl, commands
from tests.support.troubles import FLEET, Fleet
from workers.node.heartbeat import MachineWatch
from workers.state.beats import RoundState, Schedules
from workers.state.keys import FleetKeys
from workers.state.nodes import NodeRecord
from workers.state.registry import CrawlerState
from workers.state.reports import COUNTS_S, Troubles
from workers.state.services import ServiceRecord, Services

BOOKS = CrawlKeys.for_spider("books")


@dataclass
class Stage:
    """A fleet that is well, and what sees it from outside."""

    fleet: Fleet
    trawl: Trawl
    patch: pytest.MonkeyPatch
    folder: Path

    def seen(self) -> tuple[str, list[int], list[str]]:
        """What needs attention by `trawl status --json`; the codes of status and of both `/readyz`; the texts of all."""
        with suppress(redis.ResponseError):  # a Redis without room takes no heartbeat
            self.fleet.tick()
        client, url = self.fleet.client, self.fleet.server.url
        status = self.trawl("status", "--json")
        problems = json.loads(status.out)["problems"]
        exporter = Api(create_app(Source(url, None), hosts={"localhost"}))
        api = Api(create_api(client, Tokens(read=READ, act="a" * 24), url))
        of_exporter, of_api = exporter("GET", "/readyz"), api("GET", "/readyz", token=READ)
        page = exporter("GET", "/", client="127.0.0.1")
        texts = [one["what"] for one in problems if one["grave"]]
        pages = [of_exporter.body, of_api.body, html.unescape(page.body)]
        return "\n".join(texts), [status.code, of_exporter.code, of_api.code], pages


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]):  # type: ignore[no-untyped-def]
    with RedisServer(aof=True) as server:
        trawl = commands(server.url, tmp_path, monkeypatch, capfd)
        monkeypatch.setenv("TRAWL_FLEET", FLEET)
        fleet = Fleet(server)
        leads = fleet.beats.lead("host:1#a")
        Schedules(fleet.client).note(leads.token, "store_items", leads.now, RoundState.SENT)
        yield Stage(fleet, trawl, monkeypatch, tmp_path)


def unreachable(stage: Stage, url: str) -> None:
    stage.patch.setenv("TRAWL_DATABASE_URL", url.format(port=free_port(), folder=stage.folder))
    with pytest.raises(StorageError):
        store(stage.fleet.client, ["forum_list"])


def full_disk(stage: Stage) -> None:
    stage.patch.setattr("workers.node.health.FULL_BYTES", 2**60)
    MachineWatch("celery@a").report()


def wrong_clock(stage: Stage) -> None:
    right = time.time
    stage.patch.setattr("workers.node.heartbeat.time.time", lambda: right() + 3600)
    MachineWatch("celery@control").report()


AWAY = "postgresql+psycopg://trawl@127.0.0.1:1/items"


def declare(stage: Stage) -> None:
    Services(stage.fleet.client).declare("books", ServiceRecord(size=0, consumer=AWAY))
    stage.fleet.client.rpush(BOOKS.item_stream(), '{"n": 1}')


def place_away(stage: Stage) -> None:
    declare(stage)
    with client_of(stage.fleet.server.url) as client:
        sink, troubles = DatabaseRows(AWAY, "books"), Troubles(stage.fleet.client)
        over = threading.Event()
        take = partial(consume, ItemStream(client, BOOKS), sink, stopped=over.is_set)
        thread = threading.Thread(target=take)
        thread.start()
        wait_until(lambda: troubles.all(stage.fleet.registry.now()), "the consumer reports it")
        over.set()
        thread.join()


def unserved(stage: Stage) -> None:
    stage.fleet.nodes.beat(NodeRecord(name="n1", services=("forum_list",)))
    stage.fleet.node_lives = False
    del stage.fleet.slots["forum_detail/0"]
    stage.fleet.registry.forget(["forum_detail/0"])


FAULTS: dict[str, tuple[Callable[[Stage], object], str]] = {
    "PostgreSQL stopped": (
        partial(unreachable, url="postgresql+psycopg://trawl@127.0.0.1:{port}/trawl"),
        "nothing is stored, items wait",
    ),
    "SQLite's folder gone": (partial(unreachable, url="sqlite:////proc/none/trawl.sqlite"), "nothing is stored, items wait"),
    "disk full": (full_disk, "worker celery@a: no crawler starts here: the disk of the data folder"),
    "clock": (wrong_clock, "worker celery@control: its clock is 3600 s ahead of Redis's"),
    "no consumer": (declare, "books declares a consumer and none runs, 1 items wait"),
    "place of items away": (place_away, "consumer of books:items: items wait: "),
    "no node": (unserved, "no room for 1: no node serves it"),
    "no room in Redis": (lambda stage: stage.fleet.client.config_set("maxmemory", "1mb"), "of its maxmemory"),
    "a start that stands": (
        lambda stage: stage.fleet.slots.update({"forum_list/0": CrawlerState.REFUSED}),
        "forum_list/0 is refused",
    ),
}


def test_a_fleet_that_is_well_is_well_for_all(stage: Stage) -> None:
    found, codes, (of_exporter, of_api, page) = stage.seen()
    assert (found, codes, of_exporter, of_api) == ("", [0, 200, 200], "ok\n", "ok\n")
    assert "to mend" not in page


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_the_same_for_status_and_readyz(stage: Stage, fault: str) -> None:
    make, words = FAULTS[fault]
    make(stage)
    found, codes, texts = stage.seen()
    assert words in found
    assert codes == [1, 503, 503]
    assert all(words in text for text in texts)
    assert words in stage.trawl("status").out.replace("\n  ", " ")


def test_what_is_over_is_well_again(stage: Stage) -> None:
    watch = MachineWatch("celery@a")
    with stage.patch.context() as patch:
        patch.setattr("workers.node.health.FULL_BYTES", 2**60)
        watch.report()
    assert stage.seen()[1] == [1, 503, 503]
    watch.report()
    assert stage.seen()[1] == [0, 200, 200]


def test_a_process_that_does_not_repeat_its_problems_has_none(stage: Stage) -> None:
    full_disk(stage)
    key, client = FleetKeys().troubles(), stage.fleet.client
    reported = json.loads(client.hget(key, "worker celery@a") or b"")
    client.hset(key, "worker celery@a", json.dumps({**reported, "at": reported["at"] - COUNTS_S}))
    assert stage.seen()[1] == [0, 200, 200]
