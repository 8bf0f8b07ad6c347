"""`trawl backup create` and `trawl backup restore`: everything is lost during a crawl, and nothing is missing at its end."""

from __future__ import annotations

import json
import os
import subprocess
import tarfile
from contextlib import closing
from pathlib import Path

import pytest
import redis
from sqlalchemy import select

from demo.compare import compare
from demo.forum.process import ForumProcess
from fleet_operations.backup.archive import verified
from forums.scheduling.seeding import seed
from forums.storage import Database
from forums.storage.schema.tables import posts
from forums.writer import fleet_database
from forums.writer import store as writer
from redis_components.admin.inspector import snapshot
from redis_components.keys import CrawlKeys, limits_key
from tests.support import warm_start
from tests.support.contents import contents
from tests.support.examples import examples
from tests.support.processes import wait_until
from tests.support.scrapy_command import crawl_command
from tests.support.trawl_command import Trawl, commands, one_line
from workers.state.keys import FleetKeys

ROOT = Path(__file__).parents[2]
SERVICES = ("forum_list", "forum_detail")
LISTS, DETAILS = (CrawlKeys.for_spider(spider) for spider in SERVICES)


@pytest.fixture
def trawl(redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Trawl:
    """Commands with a Redis, a data folder and a database of their own."""
    return commands(redis_url, tmp_path, monkeypatch, capfd)


def crawlers(redis_url: str, forum: ForumProcess) -> list[subprocess.Popen[bytes]]:
    environment = os.environ | {"TRAWL_REDIS_URL": redis_url, "TRAWL_DEMO_URL": forum.url}
    command = crawl_command("-s", "MAX_IDLE_TIME_BEFORE_CLOSE=2")
    return [warm_start.Popen([*command, spider], cwd=ROOT, env=environment, stderr=subprocess.DEVNULL) for spider in SERVICES]


@pytest.mark.usefixtures("no_process_left")
def test_a_crawl_whose_redis_and_database_are_lost_goes_on_from_its_backup_and_nothing_is_missing(
    trawl: Trawl, redis_url: str, redis_client: redis.Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAWL_SITES_DIR", str(ROOT / "demo" / "sites"))
    saved = tmp_path / "saved.backup"
    with ForumProcess(seed=5, forums=4, threads=25, comments=5) as forum:
        monkeypatch.setenv("TRAWL_DEMO_URL", forum.url)
        forum.control(latency_ms=200)
        seed(redis_client, site="demo")
        assert trawl("scale", "forum_detail=3").code == 0
        processes = crawlers(redis_url, forum)
        try:
            wait_until(lambda: read(redis_client) >= 10, lambda: f"ten posts are read, not {read(redis_client)}", 120)
            forum.control(latency_ms=60_000)  # what is asked for now stays in flight, however slow the rest is

            def in_the_middle() -> bool:
                writer.store(redis_client, SERVICES)
                return stored() >= 10

            wait_until(in_the_middle, lambda: f"ten posts are stored, not {stored()}", 120, every_s=0.05)
            said = trawl("backup", "create", str(saved))
            assert said.code == 0, said.err
            assert snapshot(redis_client, "forum_detail", DETAILS).leased, "it was made in the middle"
        finally:
            for process in processes:
                process.kill()
                process.wait()
        redis_client.flushall()
        fleet_database.forget(f"sqlite:///{tmp_path / 'data' / 'trawl.sqlite'}")
        for file in (tmp_path / "data").glob("trawl.sqlite*"):
            file.unlink()

        said = trawl("backup", "restore", str(saved))
        assert said.code == 0, said.err
        assert 10 <= stored() < 100
        assert redis_client.hget(FleetKeys().desired(), "forum_detail") == b"3"
        forum.control(latency_ms=0)
        for process in crawlers(redis_url, forum):
            assert process.wait(90) == 0
        writer.store(redis_client, SERVICES)
        with Database.from_url() as database:
            for coverage in compare(database, forum.truth(), "demo"):
                assert coverage.expected > 0
                assert not coverage.faults
                assert not coverage.duplicates


def read(client: redis.Redis) -> int:
    """Posts that wait to be stored."""
    return sum(json.loads(item)["kind"] == "post" for item in client.lrange(DETAILS.item_stream(), 0, -1))


def stored() -> int:
    with closing(Database.from_url().open()) as database, closing(database.stream(select(posts.c.id))) as rows:
        return sum(1 for _ in rows)


def some_of_everything(client: redis.Redis, neighbour: str) -> None:
    """Keys of each kind, and some that are another application's."""
    client.hset(FleetKeys().desired(), "forum_list", "2")
    client.hset(limits_key(), mapping={"demo": '{"rate": 1}', b"\xff\x00": b"\xfe"})
    client.zadd(DETAILS.ready(), {b"\x00\xff member": -5.25, "other": 2**53 - 1, "last": float("inf")})
    client.zadd(DETAILS.lanes(), {"demo": 1.5})
    client.zadd(DETAILS.lane("demo"), {f"m{n}": n for n in range(1200)})
    client.sadd(DETAILS.fingerprints(), *(n.to_bytes(20, "big") for n in range(1700)))
    client.rpush(DETAILS.item_stream(), *(f'{{"n": {n}}}' for n in range(450)))
    client.hset(DETAILS.stats_hash(), "pages", "7")
    client.pexpire(DETAILS.stats_hash(), 80_000_000)
    client.set(neighbour, "theirs")
    client.set(f"{DETAILS.requests}-not-ours", "theirs")


LOCKS = {FleetKeys().beat_leader(): "9|somebody", DETAILS.writer(): "x|1"}


def test_every_kind_of_key_comes_back_as_it_was_and_nobody_elses_is_touched(
    trawl: Trawl, redis_client: redis.Redis, tmp_path: Path
) -> None:
    some_of_everything(redis_client, "trawl:else")
    before = contents(redis_client)
    for lock, value in LOCKS.items():
        redis_client.set(lock, value, px=80_000_000)
    assert trawl("backup", "create", str(tmp_path)).code == 0
    (saved,) = tmp_path.glob("*.backup")
    assert saved.stat().st_mode & 0o777 == 0o600
    assert not list(redis_client.scan_iter("*:backup:*")), "no copy stays in Redis"

    redis_client.delete(DETAILS.ready(), *LOCKS)
    redis_client.sadd(DETAILS.fingerprints(), "later")
    redis_client.rpush(LISTS.start_tasks(), "later")
    redis_client.hset(FleetKeys().fences(), "forum_list/0", "12")
    one_line(trawl("backup", "restore", str(saved)), 1, "--force")
    assert trawl("backup", "restore", str(saved), "--force").code == 0
    assert redis_client.hgetall(FleetKeys().fences()) == {b"forum_list/0": b"12"}, "a token never goes back"
    redis_client.delete(FleetKeys().fences())
    assert contents(redis_client) == before
    assert 0 < redis_client.pttl(DETAILS.stats_hash()) <= 80_000_000


def test_a_backup_that_is_cut_or_changed_is_refused_and_changes_nothing(
    trawl: Trawl, redis_client: redis.Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    some_of_everything(redis_client, "else")
    saved, spoilt = tmp_path / "saved", tmp_path / "spoilt"
    assert trawl("backup", "create", str(saved)).code == 0
    good = saved.read_bytes()
    before = contents(redis_client)
    for broken in (b"", b"no backup", good[: len(good) // 2], flipped(good, len(good) // 2)):
        spoilt.write_bytes(broken)
        one_line(trawl("backup", "restore", str(spoilt), "--force"), 1, str(spoilt))
        assert contents(redis_client) == before
    # What gzip and tar add may be another; what is restored may not.
    for place in range(20, len(good), len(good) // examples(160)):
        spoilt.write_bytes(flipped(good, place))
        assert "internal" not in trawl("backup", "restore", str(spoilt), "--force").err
        assert contents(redis_client) == before
    one_line(trawl("backup", "restore", str(tmp_path / "none")), 1, "No such file")
    one_line(trawl("backup", "create", str(tmp_path / "no" / "folder")), 2, "No such file")
    monkeypatch.setenv("TRAWL_NAMESPACE", "job7")
    one_line(trawl("backup", "restore", str(saved)), 1, "namespace")


def flipped(content: bytes, place: int) -> bytes:
    return content[:place] + bytes([content[place] ^ 0x41]) + content[place + 1 :]


def test_a_backup_names_no_path_and_takes_no_key_of_others(trawl: Trawl, redis_client: redis.Redis, tmp_path: Path) -> None:
    from fleet_operations.backup.archive import Parts, Writer

    forged = tmp_path / "forged"
    for member, key in (("../../escaped", None), (None, b"others")):
        with Writer(forged) as file:
            file.add("manifest.json", b'{"format": 1, "namespace": ""}')
            if member:
                file.add(member, b"x")
            parts = Parts(file)
            parts.add(key or FleetKeys().desired().encode(), "hash", -1, [b"forum_list", b"1"])
            parts.flush()
        assert verified(forged)[0]["format"] == 1
        one_line(trawl("backup", "restore", str(forged)), 1, member or "does not belong")
        assert contents(redis_client) == {}
    assert not (tmp_path.parent.parent / "escaped").exists()
    with tarfile.open(forged) as tar:
        assert "SHA256SUMS" in tar.getnames()


def test_redis_without_room_for_the_copies_is_named(trawl: Trawl, redis_client: redis.Redis, tmp_path: Path) -> None:
    redis_client.setrange(DETAILS.requests + ":large", 3_000_000, b"x")  # sent as text it would fill a buffer that is freed later
    redis_client.config_set("maxmemory", redis_client.info("memory")["used_memory"] + 1_000_000)
    try:
        one_line(trawl("backup", "create", str(tmp_path / "saved")), 1, "maxmemory")
    finally:
        redis_client.config_set("maxmemory", 0)
    assert list(tmp_path.glob("*saved*")) == []
