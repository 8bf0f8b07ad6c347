"""One fleet, one database: two writers with a file each and one Redis, judged by the rows of both files."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis

from forums.state.database_state import DatabaseClaim
from forums.state.keys import ForumFleetKeys
from forums.storage import Database, posts
from forums.storage.engine import place_of
from forums.writer.fleet_database import AnotherDatabase, forget, opened
from forums.writer.store import store
from redis_components.items.stream import ItemStream
from redis_components.keys import CrawlKeys
from tests.support.items import post, wire
from tests.support.trawl_command import Trawl, commands, one_line
from workers.process.config_digest import differences, shared_digests
from workers.state.nodes import NodeRecord, Nodes

KEYS = CrawlKeys.for_spider("forum_detail")
SERVICES = ["forum_detail"]
WRITER = """
import sys
from forums.storage import StorageError
from forums.writer.store import store
from redis_components.connection import connect
print("ready", flush=True)
sys.stdin.readline()
try:
    store(connect(), ["forum_detail"])
except StorageError as error:
    print(error, flush=True)
"""


def url_of(file: Path) -> str:
    return f"sqlite:///{file}"


def rows(file: Path) -> int:
    """Rows of posts; no file has none."""
    if not file.exists():
        return 0
    with Database.from_url(url_of(file)) as database:
        return sum(1 for _ in database.stream(posts.select()))


@pytest.fixture
def write_in(redis_client: redis.Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Path]]:
    """Queue ten posts and store them as a process whose database is the file of that name; returns the file."""
    monkeypatch.setenv("SCRAPY_SETTINGS_MODULE", "workers.settings")
    used: list[str] = []

    def write(name: str) -> Path:
        file = tmp_path / f"{name}.sqlite"
        used.append(url_of(file))
        monkeypatch.setenv("TRAWL_DATABASE_URL", used[-1])
        redis_client.rpush(KEYS.item_stream(), *(wire(post(f"{name}{number}")) for number in range(10)))
        store(redis_client, SERVICES)
        return file

    yield write
    for url in used:
        forget(url)


@pytest.fixture
def trawl(redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Trawl:
    return commands(redis_url, tmp_path, monkeypatch, capfd)


def test_two_writers_at_one_time_share_nothing_out(redis_client: redis.Redis, redis_url: str, tmp_path: Path) -> None:
    redis_client.rpush(KEYS.item_stream(), *(wire(post(f"p{number}")) for number in range(200)))
    files = [tmp_path / name / "trawl.sqlite" for name in ("a", "b")]
    common = {**os.environ, "TRAWL_REDIS_URL": redis_url, "SCRAPY_SETTINGS_MODULE": "workers.settings"}
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER],
            env={**common, "TRAWL_DATABASE_URL": url_of(file)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for file in files
    ]
    for writer in writers:
        assert writer.stdout
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin
        writer.stdin.write("go\n")
        writer.stdin.flush()
    said = [writer.communicate(timeout=120)[0] for writer in writers]
    assert [writer.returncode for writer in writers] == [0, 0]
    assert sorted(map(rows, files)) == [0, 200]
    [refused] = [text for text, file in zip(said, files, strict=True) if not rows(file)]
    [owner] = [file for file in files if rows(file)]
    assert f"stores into {owner} on host {socket.gethostname()}" in refused.splitlines()[0]


def test_another_one_takes_no_item_and_makes_no_file_and_names_what_to_set(
    redis_client: redis.Redis, write_in: Callable[[str], Path], tmp_path: Path
) -> None:
    one = write_in("one")
    with pytest.raises(AnotherDatabase) as refused:
        write_in("two")
    message = str(refused.value)
    assert "\n" not in message
    assert "set TRAWL_DATABASE_URL to the fleet's database" in message
    assert f"this fleet stores into {one} on host" in message
    assert not (tmp_path / "two.sqlite").exists()
    assert len(ItemStream(redis_client, KEYS).peek(100)) == 10
    with pytest.raises(AnotherDatabase):  # what checks threads and sends events
        opened(redis_client, url_of(tmp_path / "two.sqlite"))
    again = write_in("one")
    assert rows(again) == 20, "what the other left, and its own"


def test_a_file_that_is_another_one_at_the_same_path_is_another_database(write_in: Callable[[str], Path]) -> None:
    file = write_in("one")
    forget(url_of(file))
    kept = file.rename(file.with_name("kept.sqlite"))
    with Database.from_url(url_of(file)):
        pass
    with pytest.raises(AnotherDatabase):
        write_in("one")
    assert rows(file) == 0
    forget(url_of(file))
    file.unlink()
    kept.rename(file.with_name("elsewhere.sqlite"))
    assert rows(write_in("elsewhere")) == 20, "the identity goes with the file"


def test_the_claim_is_moved_on_purpose(
    write_in: Callable[[str], Path], trawl: Trawl, redis_client: redis.Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = write_in("one")
    monkeypatch.setenv("TRAWL_DATABASE_URL", url_of(tmp_path / "two.sqlite"))
    one_line(trawl("db", "move"), 2, f"a writer has stored into {one} on host", "--yes")
    redis_client.hset(ForumFleetKeys().database(), "at", 1.0)  # long ago
    said = trawl("db", "move")
    assert said.code == 0
    assert f"no longer into {one} on host" in said.out
    assert "trawl forums forget --all" in said.out
    assert rows(write_in("two")) == 10
    with pytest.raises(AnotherDatabase):
        write_in("one")
    assert "a writer has another database than the fleet" in trawl("status").out
    monkeypatch.setenv("TRAWL_DATABASE_URL", url_of(one))
    assert trawl("db", "move", "--yes").code == 0
    assert DatabaseClaim(redis_client).refused() is None
    assert "already" in trawl("db", "move").out


def test_a_place_names_no_password() -> None:
    url = Database.from_url("postgresql+psycopg://ada:s3cret@db.example:5433/trawl").engine.url
    assert place_of(url) == "postgresql://db.example:5433/trawl"
    several = Database.from_url("postgresql+psycopg://ada:s3cret@/trawl?host=db1,db2&password=x").engine.url
    assert place_of(several) == "postgresql://db1,db2/trawl"


def node(name: str, *files: str) -> NodeRecord:
    return NodeRecord(name=name, capacity=1, files=files)


def test_nodes_that_differ_are_named_by_what_they_differ_in() -> None:
    same = [node("a@x", "site files=1", "events.toml=2"), node("b@y", "site files=1", "events.toml=2"), node("old@z")]
    assert differences(same) == []
    assert differences([*same, node("c@z", "site files=9", "events.toml=2")]) == [
        "nodes have different site files: a@x with 1 more and c@z"
    ]


def test_a_second_machine_that_differs_does_not_serve(
    write_in: Callable[[str], Path], trawl: Trawl, redis_client: redis.Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = write_in("one")
    up = ("up", "--port-flower=0", "--port-exporter=0", "--fleet", "nope=1")  # which ends it before it starts
    monkeypatch.setenv("TRAWL_DATABASE_URL", url_of(tmp_path / "two.sqlite"))
    one_line(trawl(*up), 1, f"this fleet stores into {one} on host", "trawl db move")
    monkeypatch.setenv("TRAWL_DATABASE_URL", url_of(one))
    Nodes(redis_client).beat(node("up-1@elsewhere.example", *shared_digests()))
    assert "nope" in trawl(*up).err, "nothing else keeps it from starting"
    monkeypatch.setenv("TRAWL_DATABASE_URL", "postgresql+psycopg://ada@127.0.0.1:1/trawl")
    assert "nope" in trawl(*up).err, "one that is away may come back"
    (tmp_path / "sites" / "other.toml").write_text("# on this machine alone\n")
    one_line(trawl(*up), 1, "nodes have different site files: up-1@elsewhere.example and this machine")
    assert "nodes have different" not in trawl("status").out
    Nodes(redis_client).beat(node("up-1@third.example", *shared_digests()))
    assert "nodes have different site files: up-1@elsewhere.example and up-1@third.example" in trawl("status").out
