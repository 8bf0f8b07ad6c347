"""Many terminals, one server: who starts it, who finds it, who stops it."""

from __future__ import annotations

import os
import signal

import psutil
import pytest
import redis

from redis_components.embedded.__main__ import GRACE_S
from tests.support.embedded_user import USER, Terminal
from tests.support.processes import stays

WITH_FORKED_CHILD = """
import os, sys
from redis_components.embedded import redis_url
url = redis_url()
if os.fork() == 0:
    assert redis_url() == url
    os.setsid()
    print('{"url": "%s", "child": %d}' % (url, os.getpid()), flush=True)
sys.stdin.read()
"""
WITH_OTHER_PROGRAM = """
import subprocess, sys
from redis_components.embedded import redis_url
url = redis_url()
quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], **quiet)
print('{"url": "%s", "child": %d}' % (url, other.pid), flush=True)
sys.stdin.read()
"""
STARTED = f"""
from redis_components.embedded import redis_url
print("{{}}", flush=True)
{USER}"""


def test_a_named_server_is_used_as_it_is_and_nothing_is_started(terminal: Terminal) -> None:
    terminal.environment["TRAWL_REDIS_URL"] = "redis://named:1/0"
    assert terminal.user().url() == "redis://named:1/0"
    assert not terminal.place.root.exists()


def test_the_first_starts_the_server_and_the_next_finds_it(terminal: Terminal) -> None:
    first, second = terminal.joined(), terminal.joined()
    first.client().set("a", "x")
    assert second.client().get("a") == b"x"
    assert first.url() == second.url() == terminal.state().url
    assert len(terminal.keepers()) == 1


def test_many_that_start_at_once_share_one_server(terminal: Terminal) -> None:
    users = [terminal.user() for _ in range(8)]
    for user in users:
        user.ask()
    assert len({user.answer()["url"] for user in users}) == 1
    assert terminal.keepers() == [terminal.state().keeper]
    assert terminal.servers() == [terminal.state().pid]


def test_the_server_stays_while_anyone_uses_it_and_goes_with_the_last(terminal: Terminal) -> None:
    first, second = terminal.joined(), terminal.joined()
    server = terminal.state().pid
    first.leave()
    client = second.client()
    stays(lambda: client.ping() and terminal.state().pid == server, "the server goes on", GRACE_S + 0.6)
    second.leave()
    terminal.wait_until_stopped()


def test_commands_in_a_row_share_a_server(terminal: Terminal) -> None:
    first, second = terminal.joined(), terminal.user(STARTED)
    server = terminal.state().pid
    second.answer()  # however long an interpreter takes to start: the server waits for the next command for a moment only
    first.leave()
    second.url()
    assert terminal.state().pid == server


def test_users_that_are_killed_count_as_gone(terminal: Terminal) -> None:
    for user in (terminal.joined(), terminal.joined()):
        user.kill()
    terminal.wait_until_stopped()


def test_ctrl_c_in_the_terminal_that_started_it_does_not_reach_the_server(terminal: Terminal) -> None:
    starter, other = terminal.joined(), terminal.joined()
    client = other.client()
    client.set("a", "x")
    os.killpg(starter.process.pid, signal.SIGINT)
    assert starter.process.wait(60) != 0
    assert client.get("a") == b"x"


def test_a_forked_child_keeps_the_server_when_its_parent_is_killed(terminal: Terminal) -> None:
    parent = terminal.user(WITH_FORKED_CHILD)
    told = parent.answer()
    child = psutil.Process(int(told["child"]))
    parent.process.kill()
    parent.process.wait(60)
    stays(redis.Redis.from_url(told["url"]).ping, "the server goes on", GRACE_S + 0.6)
    child.kill()
    terminal.wait_until_stopped()


def test_another_program_that_a_user_starts_does_not_keep_the_server(terminal: Terminal) -> None:
    user = terminal.user(WITH_OTHER_PROGRAM)
    told = user.answer()
    server, other = psutil.Process(terminal.state().pid), psutil.Process(int(told["child"]))
    user.leave()
    assert not psutil.wait_procs([server], timeout=60)[1]
    assert other.is_running()
    other.kill()


def test_data_is_there_again_when_all_have_been_gone(terminal: Terminal) -> None:
    first = terminal.joined()
    first.client().set("a", "x")
    url = first.url()
    first.leave()
    terminal.wait_until_stopped()
    second = terminal.joined()
    assert second.client().get("a") == b"x"
    assert second.url() == url  # a client that outlived the first server finds the second one


def test_two_folders_have_two_servers(terminal: Terminal, tmp_path: pytest.TempPathFactory) -> None:
    other = Terminal(terminal.place.root.parent / "other")
    try:
        assert terminal.joined().url() != other.joined().url()
    finally:
        other.close()
    other.wait_until_stopped()


def test_only_the_owner_can_read_anything(terminal: Terminal) -> None:
    terminal.joined().client().set("a", "x")
    root = terminal.place.root
    names = {path.name for path in root.rglob("*")}
    assert {"server.json", "access.json", "server.conf", "keeper.log", "users.lock"} <= names
    assert [path for path in (root, *root.rglob("*")) if path.stat().st_mode & 0o077] == []


def test_the_server_wants_a_password_and_listens_on_loopback_only(terminal: Terminal) -> None:
    url = terminal.joined().url()
    login, _, place = url.removeprefix("redis://").partition("@")
    with pytest.raises(redis.AuthenticationError):
        redis.Redis.from_url(f"redis://{place}").ping()
    listening = [
        c.laddr.ip for c in psutil.Process(terminal.state().pid).net_connections("inet") if c.status == psutil.CONN_LISTEN
    ]
    assert listening == ["127.0.0.1"]
    assert login.removeprefix(":") not in " ".join(psutil.Process(terminal.state().pid).cmdline())


def test_the_server_keeps_what_it_is_told_for_ever(terminal: Terminal) -> None:
    settings = terminal.joined().client().config_get("*")
    names = ("appendonly", "appendfsync", "save", "maxmemory", "maxmemory-policy")
    assert [settings[name] for name in names] == ["yes", "everysec", "", "0", "noeviction"]


def test_asking_again_costs_next_to_nothing(terminal: Terminal) -> None:
    user = terminal.user("""
import json, sys
from redis_components.embedded import redis_url
redis_url()
sys.stdin.readline()
done = []
sys.addaudithook(lambda event, _: done.append(event) if event in ("subprocess.Popen", "os.fork", "socket.connect") else None)
for _ in range(200):
    redis_url()
print(json.dumps({"done": len(done)}), flush=True)
""")
    user.ask()
    assert int(user.answer()["done"]) == 0, "it starts and asks nobody"
