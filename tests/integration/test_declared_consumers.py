"""Workers take the items of services that declare where these go; a consumer that is killed in a crawl loses none."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
import redis

from fleet_operations.consumers.consume import Sink
from fleet_operations.consumers.declared import MARK, ConsumerPlaces, declared_consumers, without_consumer
from redis_components.embedded.files import free_port
from redis_components.errors import ConfigError
from redis_components.keys import CrawlKeys
from tests.support.plain_project import PlainFleet, plain_fleet
from tests.support.processes import heard_out, wait_until
from workers.state.services import ServiceRecord, Services
from workers.targets import parse_target

PAGES = 60


def lines(path: Path) -> list[tuple[str, int]]:
    return [(one["url"], one["number"]) for one in map(json.loads, path.read_bytes().splitlines())] if path.exists() else []


def declare(fleet: PlainFleet, path: Path) -> None:
    fleet.trawl("services", "add", "books", "--consumer", f"jsonl:{path}", "-a", "many=20")
    fleet.trawl("services", "add", "stuck", "--size", "0", "--consumer", f"postgresql+psycopg://x@127.0.0.1:{free_port()}/x")
    fleet.redis.client().rpush("stuck:items", '{"n": 1}')


@pytest.mark.usefixtures("no_process_left")
def test_a_worker_consumes_what_is_declared_and_a_killed_consumer_loses_no_item(tmp_path: Path) -> None:
    with plain_fleet(tmp_path, "books=1", pages=PAGES) as fleet:
        client, data = fleet.redis.client(), Path(fleet.environment["TRAWL_DATA_DIR"])
        path, lock = data / "books.jsonl", CrawlKeys.for_spider("books").writer()
        fleet.beat()
        fleet.node()
        declare(fleet, path)
        fleet.wait_whole("books/0")
        fleet.crawl("books:start_urls")
        wait_until(lambda: lines(path), lambda: f"a worker takes items\n{fleet.said()}", 60)
        first = fleet.consumer_pid()
        with heard_out(client, first):
            os.kill(first, signal.SIGKILL)
        client.delete(lock)  # the lock of the dead one, which would run out after 30 s
        wait_until(lambda: fleet.consumer_pid() != first and client.exists(lock), lambda: f"another one\n{fleet.said()}", 60)

        def missing() -> str:
            return f"{len(whole - set(lines(path)))} of {len(whole)} are missing, {client.llen('books:items')} are in Redis"

        whole = {(f"{fleet.site}/{page}", number) for page in range(1, PAGES + 1) for number in range(20)}
        wait_until(lambda: set(lines(path)) == whole, lambda: f"all items: {missing()}\n{fleet.said()}", 60)
        wait_until(lambda: not client.llen("books:items"), "and have left Redis")
        assert len(lines(path)) <= len(whole) + Sink.batch, "at most one batch comes again"
        assert not client.exists("books:items:dead")
        assert f"written: {path} on a@test" in fleet.trawl("services", "show", "books")
        assert client.llen("stuck:items") == 1
        fleet.shows("consumer of stuck:items: items wait", "status")
        Services(client).remove("books")
        Services(client).remove("stuck")
        wait_until(lambda: not client.exists(lock), lambda: f"it ends with its declaration\n{fleet.said()}")


def test_a_file_stays_with_the_machine_that_has_it(
    redis_client: redis.Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places, target = ConsumerPlaces(redis_client), parse_target("jsonl:out/books.jsonl")

    def on(host: str, folder: str, *, moved: bool = False) -> None:
        (tmp_path / folder).mkdir(exist_ok=True)
        monkeypatch.chdir(tmp_path / folder)
        monkeypatch.setattr("socket.gethostname", lambda: host)
        places.claim("books", target, f"celery@{host}", moved=moved)

    on("a", "disk")
    with pytest.raises(ConfigError, match=r"written to out/books.jsonl on celery@a, .* nothing is written here.*--to jsonl:out/"):
        on("b", "another disk")
    assert not (tmp_path / "another disk/out").exists()
    on("b", "disk")  # it has the same folder
    assert places.all()["books"].node == "celery@b"
    (tmp_path / "disk/out" / MARK).unlink()
    on("b", "disk")  # the same machine, whose folder was emptied
    on("c", "another disk", moved=True)
    with pytest.raises(ConfigError, match="on celery@c"):
        on("b", "disk")
    monkeypatch.setattr("socket.gethostname", lambda: "d")
    places.claim("shelf", parse_target("postgresql://x.example/in"), "celery@d")
    places.claim("shelf", parse_target("postgresql://x.example/in"), "celery@e")
    assert places.all()["shelf"].node == "celery@e"
    places.forget("shelf")
    assert set(places.all()) == {"books"}


def test_consumers_are_those_that_services_declare(redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAWL_FLEET", "books=0")
    services = Services(redis_client)
    services.declare("books", ServiceRecord(consumer="jsonl:data/books.jsonl"))
    services.declare("quiet", ServiceRecord(consumer="none"))
    services.declare("shelf", ServiceRecord(consumer="jsonl:data/shelf.jsonl"))
    found = declared_consumers(redis_client)
    assert {name: one.text for name, one in found.items()} == {
        "books": "jsonl:data/books.jsonl",
        "shelf": "jsonl:data/shelf.jsonl",
    }
    assert without_consumer(redis_client) == ["books", "shelf"]
    redis_client.set(found["shelf"].stream(redis_client).writer_key, "a|0")
    assert without_consumer(redis_client) == ["books"]


def test_a_target_that_an_older_trawl_knew_is_a_consumer_that_cannot_run(
    redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAWL_FLEET", "books=0")
    Services(redis_client).declare("books", ServiceRecord(consumer="csv:data/books.csv"))
    assert without_consumer(redis_client) == ["books"], "trawl status shows that its items wait"
    with pytest.raises(ConfigError, match=r"'csv:…' is not a target: write jsonl:PATH"):
        _ = declared_consumers(redis_client)["books"].target
