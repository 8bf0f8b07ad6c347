"""Attack: a Redis that is there and answers with errors. Everybody waits, says so once, and goes on as the same process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis

from redis_components.admin import health
from tests.support.fleet import Program, ToyFleet
from tests.support.processes import wait_until
from tests.support.redis_server import RedisServer
from workers.state.keys import FleetKeys

pytestmark = pytest.mark.usefixtures("no_process_left")


def _cannot_save(server: RedisServer, client: redis.Redis) -> None:
    """MISCONF: the last snapshot could not be written, because a folder has its name."""
    (server.directory / "dump.rdb" / "in the way").mkdir(parents=True)
    client.config_set("save", "3600 1")
    client.execute_command("BGSAVE")
    wait_until(lambda: client.info("persistence")["rdb_last_bgsave_status"] != "ok", "the snapshot fails")


def _can_save(server: RedisServer, client: redis.Redis) -> None:
    (server.directory / "dump.rdb" / "in the way").rmdir()
    (server.directory / "dump.rdb").rmdir()
    client.execute_command("BGSAVE")


def _other_password(server: RedisServer, client: redis.Redis) -> None:
    client.config_set("requirepass", "another one")
    for kind in ("normal", "pubsub"):
        client.client_kill_filter(_type=kind, skipme=True)


Act = Callable[[RedisServer, redis.Redis], object]
REFUSALS: dict[str, tuple[Act, Act, str]] = {
    "MISCONF": (_cannot_save, _can_save, "cannot write to its disk"),
    "NOREPLICAS": (
        lambda _, client: client.config_set("min-replicas-to-write", 1),
        lambda _, client: client.config_set("min-replicas-to-write", 0),
        "too few replicas",
    ),
    "READONLY": (
        lambda _, client: client.execute_command("REPLICAOF", "127.0.0.1", "1"),
        lambda _, client: client.execute_command("REPLICAOF", "NO", "ONE"),
        "read-only replica",
    ),
    "NOAUTH": (_other_password, lambda server, client: client.config_set("requirepass", server.password), "password"),
    "NOPERM": (
        lambda _, client: client.execute_command("ACL", "SETUSER", "default", "-@write"),
        lambda _, client: client.execute_command("ACL", "SETUSER", "default", "+@all"),
        "refuses a command to this user",
    ),
}
"""What refuses, what ends that, and what the worker says of it."""


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[ToyFleet]:
    with ToyFleet(tmp_path, "toy=1", aof=True) as fleet:
        yield fleet


def lines(program: Program, words: str) -> int:
    """How many lines have these words."""
    return sum(words in line for line in program.said().splitlines())


@pytest.mark.timeout(600)
@pytest.mark.parametrize("refusal", REFUSALS)
def test_worker_crawler_and_beat_wait_and_go_on_as_the_same_processes(fleet: ToyFleet, refusal: str) -> None:
    begin, end, said = REFUSALS[refusal]
    worker, beat = fleet.node(), fleet.beat()
    before = fleet.wait_whole("toy/0", timeout_s=60)
    client = fleet.redis.client()
    client.ping()  # its connection lives through a change of the password
    begin(fleet.redis, client)
    try:
        wait_until(lambda: lines(worker, "waiting, crawlers continue") and lines(beat, "trying again"), fleet.said, 60)
    finally:
        end(fleet.redis, client)
    wait_until(lambda: lines(worker, "Redis accepts writes again") and lines(beat, "is back"), fleet.said, 60)
    assert fleet.ask("reconcile_fleet.apply_async(ignore_result=False).get(timeout=60)") == "[]"
    after = fleet.wait_whole("toy/0", timeout_s=60)
    assert (worker.process.poll(), beat.process.poll()) == (None, None)
    assert after["toy/0"].pid == before["toy/0"].pid
    assert lines(worker, said)
    bad = [word for word in ("Unrecoverable", "CRITICAL", "Traceback", "Frequent restarts") if lines(worker, word)]
    assert not bad, worker.said()
    assert lines(worker, "waiting, crawlers continue") == lines(worker, "Redis accepts writes again") == 1


def test_a_redis_without_room_is_not_told_again_each_second(fleet: ToyFleet) -> None:
    client, beat = fleet.redis.client(), fleet.beat()
    wait_until(lambda: client.exists(FleetKeys().beat_leader()), fleet.said, 60)

    def looks() -> int:
        return int(client.info("commandstats")["cmdstat_evalsha"]["calls"])

    client.config_set("maxmemory", 1)
    wait_until(lambda: lines(beat, "the broker is away"), fleet.said, 60)
    before, said = looks(), beat.said()
    wait_until(lambda: looks() > before + 6, fleet.said, 60)
    assert lines(beat, "the broker is away") == 1, beat.said()
    # Only where beat had still to note when its tasks were due first.
    assert lines(beat, "of its maxmemory") == lines(beat, "Redis refuses") <= 1, beat.said()
    assert beat.said().removeprefix(said).count("\n") <= 1, "that Redis, which has only the broker, is back"
    client.config_set("maxmemory", 0)
    wait_until(lambda: lines(beat, "the broker is back"), fleet.said, 60)


@pytest.mark.parametrize(
    ("info", "names"),
    [
        ({}, []),
        ({"maxmemory_policy": "noeviction", "aof_enabled": 1, "redis_version": "7.0.15", "role": "master"}, []),
        ({"maxmemory_policy": "allkeys-lru", "maxmemory": 100, "used_memory": 1}, ["eviction"]),
        ({"maxmemory_policy": "volatile-ttl"}, ["eviction"]),
        ({"maxmemory": 100, "used_memory": 91}, ["memory"]),
        ({"maxmemory": 100, "used_memory": 90}, []),
        ({"aof_enabled": 0, "role": "master"}, ["no_aof"]),
        ({"aof_enabled": 0, "role": "slave"}, ["replica"]),
        ({"aof_enabled": 1, "aof_last_write_status": "err"}, ["cannot_save"]),
        ({"rdb_last_bgsave_status": "err"}, ["cannot_save"]),
        ({"redis_version": "6.0.16"}, ["version"]),
        ({"redis_version": "6.2.0"}, []),
        ({"loading": 1}, ["loading"]),
    ],
)
def test_what_info_says_is_told(info: dict[str, object], names: list[str]) -> None:
    found = health.findings(info)
    assert [one.name for one in found] == names
    assert {one.name for one in found} <= set(health.NAMES)
    assert all(one.fix for one in found)


def test_an_evicting_redis_without_a_file_is_noticed_logged_once_and_told(fleet: ToyFleet) -> None:
    client = fleet.redis.client()
    client.config_set("maxmemory", "500mb")
    client.config_set("maxmemory-policy", "allkeys-lru")
    client.config_set("appendonly", "no")
    beat = fleet.beat()
    # Two lines, one after the other: the second may still be on its way when the first is read.
    wait_until(lambda: lines(beat, "may evict keys") and lines(beat, "no append-only file"), fleet.said, 60)
    assert lines(beat, "no append-only file") == lines(beat, "may evict keys") == 1
    wait_until(lambda: fleet.registry.errors(), fleet.said)
    assert ["may evict keys" in str(one) for one in fleet.registry.errors()] == [True]
    shown = fleet.run("from cli.main import main; main(['status'])")
    assert "maxmemory-policy allkeys-lru" in shown
    assert "no append-only file" in shown
    told = fleet.run("from cli.main import main; main(['doctor'])")
    assert "CONFIG SET maxmemory-policy noeviction" in told
