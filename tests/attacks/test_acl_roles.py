"""Each process of a fleet under a Redis user of its own: it works to the end, and is refused what it does not need."""

from __future__ import annotations

import inspect
import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import redis

from cli.commands.acl import Role, roles, service_role
from demo.forum.process import ForumProcess
from forums.scheduling.seeding import seed
from redis_components.keys import CrawlKeys
from tests.integration.test_breaker_state import opened
from tests.integration.test_forum_crawl import ROOT, crawl
from tests.support.fleet import ToyFleet
from tests.support.processes import wait_until
from tests.support.redis_server import RedisServer
from tests.support.trawl_command import Trawl, commands, one_line
from workers.breaker.state import mend
from workers.state.holds import Breakers, FleetHolds
from workers.state.keys import FleetKeys
from workers.state.reports import latest

JOB = "job42"
READERS = ("exporter", "cli-read")


def made(monkeypatch: pytest.MonkeyPatch, *services: str) -> dict[str, Role]:
    monkeypatch.setenv("TRAWL_NAMESPACE", JOB)
    return {role.name: role for role in roles(CrawlKeys.for_spider(service) for service in services)}


def as_user(server: RedisServer, admin: redis.Redis, role: Role) -> redis.Redis:
    if role.reads and int(admin.info("server")["redis_version"].partition(".")[0]) < 7:
        pytest.skip("a user that only reads a key (%R~) needs Redis 7 (docs/security.md)")
    admin.execute_command("ACL", "SETUSER", role.name, *role.rules(">marked"))
    return redis.Redis(port=server.port, username=role.name, password="marked")


REFUSED = (
    ("FLUSHALL",),
    ("FLUSHDB",),
    ("KEYS", "*"),
    ("CONFIG", "GET", "*"),
    ("CONFIG", "SET", "dir", "/tmp"),
    ("ACL", "LIST"),
    ("SHUTDOWN",),
    ("REPLICAOF", "NO", "ONE"),
    ("MODULE", "LIST"),
    ("CLIENT", "LIST"),
    ("MONITOR",),
    ("SCRIPT", "FLUSH"),
    ("GET", "other:key"),
    ("SET", "other:key", "1"),
    ("FUNCTION", "LOAD", "#!lua name=theirs\nredis.register_function('f', function() return 1 end)"),
    ("FUNCTION", "FLUSH"),
    ("FUNCTION", "DELETE", "theirs"),
    ("FUNCTION", "LIST"),
    ("FCALL", "f", "0"),
    ("SLOWLOG", "GET"),
    ("CLIENT", "PAUSE", "1"),
    ("SORT", "other:key", "BY", "other:*"),
    ("COPY", "other:key", "job42:mine"),
    ("SWAPDB", "0", "1"),
    ("EVAL", "return redis.call('FLUSHALL')", "0"),
    ("EVAL", "return redis.call('COPY', 'other:key', 'job42:mine')", "0"),
    ("EVAL", "return redis.call('SET', 'other:key', 1)", "0"),
)


def test_no_role_may_do_what_no_process_needs_and_readers_change_nothing(
    redis_server: RedisServer, redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = made(monkeypatch, "toy")
    sizes = FleetKeys().desired()
    try:
        for role in found.values():
            client = as_user(redis_server, redis_client, role)
            for command in REFUSED:
                refused(client, *command)
            if role.name in READERS:
                assert client.hgetall(sizes) == {}
                refused(client, "HSET", sizes, "toy", "9")
                refused(client, "EVAL", f"return redis.call('HSET', '{sizes}', 'toy', '9')", "1", sizes)
            if role.name in ("crawler", "beat", "flower"):
                refused(client, "HSET", sizes, "toy", "9")
            if role.name == "crawler":
                refused(client, "HSET", FleetKeys().schedule(), "seed_forums", "{}")
                for queue in ("control", "celery", "_kombu.binding.control", "unacked"):
                    refused(client, "LPUSH", f"{JOB}:{queue}", "a task")
            if role.name in ("beat", "flower"):
                refused(client, "RPUSH", CrawlKeys.for_spider("toy").start_tasks(), "http://elsewhere.example/")
            client.close()
    finally:
        redis_client.execute_command("ACL", "DELUSER", *found)


def refused(client: redis.Redis, *command: str) -> None:
    with pytest.raises(redis.ResponseError) as error:
        client.execute_command(*command)
    words = "NOPERM|permission|can't run this command|can't access|ACL failure|unknown command"  # of 6.2, which has no functions
    assert re.search(words, str(error.value)), command


def test_a_script_without_end_of_one_user_is_ended_by_the_administrator_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    found = made(monkeypatch, "toy")
    with RedisServer() as server:
        root = server.client()
        root.config_set("lua-time-limit", 10)
        clients = {name: as_user(server, root, role) for name, role in found.items()}
        for client in clients.values():
            client.ping()
        with ThreadPoolExecutor() as pool:
            running = pool.submit(clients.pop("exporter").execute_command, "EVAL", "while true do end", "0")
            wait_until(lambda: is_busy(root), "the script runs", 60)
            admin = clients.pop("cli-admin")
            for client in clients.values():
                refused(client, "SCRIPT", "KILL")
            assert admin.execute_command("SCRIPT", "KILL")
            with pytest.raises(redis.ResponseError, match="killed"):
                running.result(60)
        assert root.ping()


def is_busy(client: redis.Redis) -> bool:
    try:
        client.ping()
    except redis.ResponseError as error:
        return "BUSY" in str(error)
    return False


@pytest.mark.usefixtures("no_process_left")
def test_a_fleet_whose_processes_have_a_user_each_comes_up_scales_and_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = made(monkeypatch, "toy")
    users = tmp_path / "users.txt"  # as `trawl config acl --passwords` writes them
    users.write_text("crawler-toy marked\n")
    with ToyFleet(tmp_path, "toy=1", TRAWL_NAMESPACE=JOB, TRAWL_REDIS_USERS=str(users)) as fleet:
        admin = fleet.redis.client()
        for role in (*found.values(), service_role("toy", None)):
            as_user(fleet.redis, admin, role).close()

        def become(name: str) -> None:
            fleet.environment["TRAWL_REDIS_URL"] = f"redis://{name}:marked@127.0.0.1:{fleet.redis.port}/0"

        become("beat")
        fleet.beat()
        become("worker")
        fleet.node()
        fleet.wait_whole("toy/0", timeout_s=60)
        become("cli-admin")
        assert fleet.ask("scale_fleet.delay(toy=2).get(timeout=60)") == "{'toy': 2}"
        fleet.wait_whole("toy/0", "toy/1", timeout_s=60)
        assert {"worker", "crawler-toy"} <= {client["user"] for client in admin.client_list()}
        (act,) = latest(admin, 10)  # what beat sends is not an operator's
        assert (act.what, act.outcome) == (("trawl.scale_fleet", "toy=2"), "done")
        assert "@" in act.by
        become("cli-read")
        shown = fleet.run("import sys; from cli.main import main; sys.exit(main(['status', '--json']))")
        assert json.loads(shown)["crawlers"]
        assert "refuses a command to this user" in fleet.run(
            "import sys; from cli.main import main; sys.exit(main(['scale', 'toy=5']))"
        )
        wait_until(lambda: fleet.registry.desired() == {"toy": 2}, lambda: "nothing was changed", 60)
        for command in ("doctor", "limit", "forums"):
            fleet.run(f"from cli.main import main; main(['{command}', '--json'])")
        assert {(entry["username"], entry["object"]) for entry in denied(admin)} == {
            ("cli-read", "hset"),
            ("cli-read", "xadd"),  # the attempt is in the file of the audit
        }


@pytest.mark.usefixtures("no_process_left")
@pytest.mark.parametrize("by_service", [False, True])
def test_a_crawler_with_its_own_user_crawls_a_forum_to_the_end(
    redis_server: RedisServer, redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch, by_service: bool
) -> None:
    services = ("forum_list", "forum_detail")
    crawlers = [made(monkeypatch, *services)["crawler"]] * 2
    if by_service:
        crawlers = [service_role("forum_list", "forum_detail"), service_role("forum_detail", None)]
    for role in crawlers:
        as_user(redis_server, redis_client, role).close()
    redis_client.acl_log_reset()
    monkeypatch.setenv("TRAWL_SITES_DIR", str(ROOT / "demo" / "sites"))
    try:
        with ForumProcess(seed=3, forums=2, threads=8, comments=3) as forum:
            monkeypatch.setenv("TRAWL_DEMO_URL", forum.url)
            forum.control(error_rate=0.05)
            seed(redis_client, site="demo")
            for role, service in zip(crawlers, services, strict=True):
                crawl(f"redis://{role.name}:marked@127.0.0.1:{redis_server.port}/0", forum, service)
            truth = forum.truth()
        items = redis_client.lrange(CrawlKeys.for_spider("forum_detail").item_stream(), 0, 10_000)
        assert {item["id"] for item in map(json.loads, items) if item["kind"] == "comment"} == set(truth["comments"])
        assert denied(redis_client) == []
    finally:
        redis_client.execute_command("ACL", "DELUSER", *(role.name for role in crawlers))


def keys_of(service: str) -> set[str]:
    """Return every key of this service, auxiliary keys too; limits and robots.txt of sites are shared by all."""
    keys, found = CrawlKeys.for_spider(service), set()
    for name, made_by in inspect.getmembers(CrawlKeys, inspect.isfunction):
        if not name.startswith("_") and inspect.signature(made_by).return_annotation == "str":
            some = {"number": 1}
            arguments = {one: some.get(one, "x") for one in list(inspect.signature(made_by).parameters)[1:]}
            found.add(getattr(keys, name)(**arguments))
    bases = {keys.requests, keys.dupefilter, keys.start_urls, keys.items, keys.stats, *keys.turn_keys}
    return {key for key in found | bases if not key.startswith((keys.limits, keys.robots()))}


def test_a_services_own_user_is_refused_every_key_of_another(
    redis_server: RedisServer, redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAWL_NAMESPACE", JOB)
    feeding, other = service_role("toy", "next"), "toy2"
    try:
        client = as_user(redis_server, redis_client, feeding)
        assert len(keys_of(other)) > 40
        for key in keys_of(other):
            for command in (("TYPE", key), ("DEL", key), ("EVAL", "return redis.call('TYPE', KEYS[1])", "1", key)):
                refused(client, *command)
        keys = CrawlKeys.for_spider("toy")
        for key in (*keys_of("toy"), keys.limits, keys.robots(), keys.robots_file("x"), keys.robots_bytes()):
            client.delete(key)
        threads = CrawlKeys.for_spider("next").threads()
        assert client.hgetall(threads) == {}, "by which the service before knows what has changed"
        refused(client, "DEL", threads)
        for key in keys_of("next") - {key for key in keys_of("next") if ":start_urls" in key}:
            refused(client, "TYPE", key)
        for key in (FleetKeys().desired(), FleetKeys().schedule(), FleetKeys().slot(other, 0), f"{JOB}:control"):
            refused(client, "TYPE", key)
        refused(client, "HSET", FleetKeys().holds(), "fleet", "{}")
        assert opened(client), "it notes that a site answers with other pages"
        mend(redis_client, Breakers(redis_client).all())
        assert "breaker:" in str(FleetHolds(redis_client).fields()), "and who may hold it everywhere does"
        client.close()
    finally:
        redis_client.execute_command("ACL", "DELUSER", feeding.name)


def denied(admin: redis.Redis) -> list[dict[str, Any]]:
    """What was refused, but for a command that redis-py tries and Redis 6.2 does not have: it refuses it here."""
    entries = [{key: str(value) for key, value in entry.items()} for entry in admin.acl_log()]
    return [entry for entry in entries if entry["object"] != "client"]


@pytest.fixture
def trawl(redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Trawl:
    """Commands with a Redis of their own."""
    return commands(redis_url, tmp_path, monkeypatch, capfd)


def test_the_users_that_the_command_prints_can_log_in_with_the_passwords_of_the_file(
    trawl: Trawl, redis_server: RedisServer, redis_client: redis.Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one_line(trawl("config", "acl"), 2, "TRAWL_NAMESPACE")
    monkeypatch.setenv("TRAWL_NAMESPACE", JOB)
    file = tmp_path / "users"
    said = trawl("config", "acl", "--passwords", str(file))
    assert said.code == 0, said.err
    assert file.stat().st_mode & 0o777 == 0o600
    passwords = dict(line.split() for line in file.read_text().splitlines())
    assert not [secret for secret in passwords.values() if secret in said.out], "printed is what tells nobody the password"
    try:
        for line in said.out.splitlines():
            redis_client.execute_command(*line.split())
        for name, password in passwords.items():
            with redis.Redis(port=redis_server.port, username=name, password=password) as client:
                assert client.execute_command("ECHO", name) == name.encode()
    finally:
        redis_client.execute_command("ACL", "DELUSER", *passwords)
    one_line(trawl("config", "acl", "--passwords", str(file)), 2, str(file), "does not exist yet")
    (line,) = [line for line in trawl("config", "acl", "--service", "forum_list").out.splitlines() if not line.startswith("#")]
    assert line.split()[:3] == ["ACL", "SETUSER", "crawler-forum_list"]
    assert f"%R~{CrawlKeys.for_spider('forum_detail').threads()}" in line
    assert trawl("config", "acl", "--feeds", "books").code == 2
