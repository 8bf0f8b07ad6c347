"""One server process: what it promises to the keeper and to the tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psutil
import pytest
import redis

from tests.support.processes import wait_until
from tests.support.redis_server import RedisServer


def test_the_fixture_is_an_empty_server_with_a_password(redis_client: redis.Redis, redis_url: str) -> None:
    assert redis_client.ping()
    assert redis_client.dbsize() == 0
    assert ":@" not in redis_url


@pytest.mark.parametrize(("aof", "kept"), [(True, b"x"), (False, None)])
@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_server_keeps_port_and_password_when_it_is_started_again_and_its_data_with_aof(
    end: str, aof: bool, kept: bytes
) -> None:
    with RedisServer(aof=aof) as server:
        client, url = server.client(), server.url
        client.set("a", "x")
        getattr(server, end)()
        assert not server.running
        server.start()
        assert server.url == url
        assert client.get("a") == kept


def test_a_frozen_server_keeps_connections_and_does_not_answer() -> None:
    with RedisServer() as server:
        client = redis.Redis.from_url(f"{server.url}?socket_timeout=0.2")
        wait_until(client.ping, "its connection is there")
        server.pause()
        with pytest.raises(redis.TimeoutError):
            client.ping()
        server.resume()
        wait_until(client.ping, "it answers again")
        client.close()


def test_a_test_server_ends_when_the_test_process_is_killed(tmp_path: Path) -> None:
    script = f"""
from pathlib import Path
from tests.support.processes import wait_until
from tests.support.redis_server import RedisServer
print(RedisServer(directory=Path({str(tmp_path)!r})).start().pid, flush=True)
input()
"""
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        server = psutil.Process(int(owner.stdout.readline()))
        owner.kill()
    assert not psutil.wait_procs([server], timeout=60)[1]
