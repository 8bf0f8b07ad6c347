"""Items in whole parts, as objects of S3: killed anywhere, no item is lost, and none is in two parts.

The server of S3's protocol is moto's, in a separate process: `pip install 'moto[server]'`, with `moto_server` on PATH.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import redis
from minio import Minio

from fleet_operations.consumers.consume import Item, consume
from fleet_operations.consumers.parts import Parts, place_of, put_text
from fleet_operations.consumers.run_files import item_key
from redis_components.embedded.files import free_port
from redis_components.items.stream import ItemStream
from redis_components.keys import CrawlKeys
from tests.integration.test_group_runs import CHAIN, ended, shop_fleet
from tests.integration.test_run_files import check_retention
from tests.support import warm_start
from tests.support.processes import heard_out, wait_until
from tests.support.trawl_command import Trawl, commands, one_line

KEYS = CrawlKeys.for_spider("books")
MANY = 3_000


class KeptParts(Parts):
    """Keeps parts in memory; `dies` after so many."""

    def __init__(self, parts: dict[str, list[Any]], dies: int = 0, **bounds: Any) -> None:
        super().__init__(**bounds)
        self.parts = parts
        self._left = dies

    def write(self, items: Sequence[Item]) -> dict[int, str]:
        self.parts[self.part] = [one.value for one in items]
        self._left -= 1
        if self._left == 0:
            raise SystemExit
        return {}


def fill(client: redis.Redis, *, first: int, number: int) -> None:
    with client.pipeline() as pipe:
        for n in range(first, first + number):
            pipe.rpush("books:items", json.dumps({"n": n}))
        pipe.execute()


def test_a_death_after_a_part_was_written_brings_the_same_part_again(redis_client: redis.Redis) -> None:
    parts: dict[str, list[Any]] = {}
    for life in range(4):
        fill(redis_client, first=life * 700, number=700)
        stream = ItemStream(redis_client, KEYS)
        redis_client.delete(stream.writer_key)
        with pytest.raises(SystemExit):
            consume(stream, KeptParts(parts, dies=life + 1, max_bytes=3_000, at_once=True), stopped=lambda: False)
        assert redis_client.exists(stream.part_key)
    stream = ItemStream(redis_client, KEYS)
    redis_client.delete(stream.writer_key)
    consume(stream, KeptParts(parts, max_bytes=3_000, at_once=True), stopped=lambda: False, once=True)
    assert len(parts) > 4
    assert sorted(one["n"] for part in parts.values() for one in part) == list(range(4 * 700))
    assert not redis_client.exists(stream.part_key)


def test_items_that_came_in_place_of_the_noted_ones_do_not_replace_a_part(redis_client: redis.Redis) -> None:
    parts: dict[str, list[Any]] = {}
    stream = ItemStream(redis_client, KEYS)
    fill(redis_client, first=0, number=3)
    with pytest.raises(SystemExit):
        consume(stream, KeptParts(parts, dies=1, at_once=True), stopped=lambda: False)
    redis_client.delete("books:items", stream.writer_key)  # somebody has taken them
    fill(redis_client, first=3, number=3)
    consume(stream, KeptParts(parts, at_once=True), stopped=lambda: False, once=True)
    assert sorted(one["n"] for part in parts.values() for one in part) == list(range(6))


def test_a_small_part_waits_for_more_items_until_it_is_old(redis_client: redis.Redis) -> None:
    stream = ItemStream(redis_client, KEYS)
    parts = KeptParts({}, max_age_s=600)
    stream.lock("a")
    assert parts.peek(stream, "a") == []
    fill(redis_client, first=0, number=3)
    assert parts.peek(stream, "a") == []
    assert parts._since is not None
    parts._since -= 600
    assert len(parts.peek(stream, "a")) == 3
    assert KeptParts({}).peek(stream, "b") != [], "what was noted comes at once"


@pytest.mark.usefixtures("no_process_left")
def test_a_run_leaves_its_files_in_a_bucket_although_a_crawler_and_the_consumer_die(bucket: Minio, tmp_path: Path) -> None:
    with shop_fleet(tmp_path, "fine", "chain", files="s3://shop/runs") as (fleet, _):
        fleet.beat()
        node = fleet.node()
        run = fleet.trawl("run", "--group", "shops").split()[0]
        os.kill(fleet.crawler(f"chain.{run}/0").pid, signal.SIGKILL)
        # moto answers with CPU of its own
        wait_until(lambda: list(bucket.list_objects("shop", f"runs/shops/{run}/", recursive=True)), fleet.said, 60, every_s=0.25)
        with heard_out(client := fleet.redis.client(), fleet.consumer_pid()):
            node.process.kill()  # with the consumer, whose lock would live for half a minute
            node.process.wait()
        client.delete(CrawlKeys.for_spider(run, items=item_key(run)).writer())
        fleet.node("b")
        assert ended(fleet, run).counts == {"fine": 2}

        def content(name: str) -> bytes:
            with closing(bucket.get_object("shop", f"runs/shops/{name}")) as answer:
                return answer.read()

        wait_until(lambda: content("latest.txt") == f"{run}\n".encode(), fleet.said, 60, every_s=0.25)
        manifest = json.loads(content(f"{run}/manifest.json"))
        rows = {one["spider"]: one["rows"] for one in manifest["members"]}
        assert rows == {"fine": 5, "chain": CHAIN}
        for one in manifest["members"]:
            (file,) = (file for file in one["files"] if file["file"].endswith(".jsonl"))
            body = content(f"{run}/{one['spider']}.jsonl")
            assert (len(body.splitlines()), sha256(body).hexdigest()) == (one["rows"], file["sha256"])

        def left() -> set[str]:
            return {str(one.object_name) for one in bucket.list_objects("shop", "runs/", recursive=True)}

        names = (f"{run}/chain.jsonl", f"{run}/fine.jsonl", f"{run}/manifest.json", "latest.txt")
        wait_until(lambda: left() == {f"runs/shops/{name}" for name in names}, lambda: f"{left()}\n{fleet.said()}", 60)


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Minio]:
    server = shutil.which("moto_server")
    if server is None:
        pytest.skip("needs moto_server: pip install 'moto[server]'")
    port, password = free_port(), tmp_path / "secret"
    password.write_text("marked-secret\n")
    monkeypatch.setenv("TRAWL_S3_ENDPOINT", f"http://127.0.0.1:{port}")
    monkeypatch.setenv("TRAWL_S3_ACCESS_KEY", "me")
    monkeypatch.setenv("TRAWL_S3_SECRET_KEY_FILE", str(password))
    with subprocess.Popen([server, "-H", "127.0.0.1", "-p", str(port)], stderr=subprocess.DEVNULL) as running:
        try:
            client = Minio(f"127.0.0.1:{port}", "me", "marked-secret", secure=False)

            def is_up() -> bool:
                try:
                    return client.bucket_exists("shop") or client.make_bucket("shop") is None
                except OSError:
                    return False

            wait_until(is_up, "the server of objects answers", 60, every_s=0.2)
            yield client
        finally:
            running.kill()


def stored(client: Minio, prefix: str) -> list[int]:
    found: list[int] = []
    for one in client.list_objects("shop", prefix, recursive=True):
        answer = client.get_object("shop", str(one.object_name))
        found += [json.loads(line)["n"] for line in answer.read().splitlines()]
        answer.close()
    return found


def test_a_bucket_is_a_place_of_files_of_runs(bucket: Minio) -> None:
    place = place_of("s3://shop/runs")
    check_retention(place)
    put_text(place, "g/g-1/books.jsonl", b"1\n2\n")
    put_text(place, "g/g-1/books.jsonl", b"3\n4\n")
    place.point("g/latest", "g-1")
    assert list(place.lines("g/g-1/books.jsonl")) == [b"3\n", b"4\n"]
    assert list(place.lines("g/g-1/none")) == []
    assert place.names("g/g-1") == ["g/g-1/books.jsonl"]
    assert list(place.lines("g/latest.txt")) == [b"g-1\n"]
    assert {str(one.object_name) for one in bucket.list_objects("shop", "runs/g/g-1/", recursive=True)} == {
        "runs/g/g-1/books.jsonl"
    }


def test_a_consumer_of_objects_that_is_killed_loses_and_doubles_no_item(
    bucket: Minio, redis_url: str, redis_client: redis.Redis, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    trawl: Trawl = commands(redis_url, tmp_path, monkeypatch, capfd)
    monkeypatch.setenv("TRAWL_FLEET", "books=1")
    to = ("items", "consume", "books", "--to", "s3://shop/books", "--max-mb", "0.001", "--max-age", "0.1")
    fill(redis_client, first=0, number=MANY)
    with warm_start.Popen([sys.executable, "-m", "cli.main", *to], env=dict(os.environ)) as process:
        wait_until(lambda: stored(bucket, "books/"), "an object is there", 60, every_s=0.01)
        with heard_out(redis_client, process.pid):
            process.kill()
            process.wait()
    redis_client.delete(KEYS.writer())  # else the next one waits until the dead one's lock has run out
    assert trawl(*to, "--once").code == 0
    assert sorted(stored(bucket, "books/")) == list(range(MANY))
    assert redis_client.llen("books:items") == 0
    fill(redis_client, first=0, number=1)
    said = trawl("items", "consume", "books", "--to", "s3://nobody/books", "--once")
    one_line(said, 2, "NoSuchBucket: ")
    assert "marked-secret" not in said.out + said.err
    assert redis_client.llen("books:items") == 1
