"""`connect`: pools, URLs, and what it says when something is wrong."""

from __future__ import annotations

import subprocess
import sys

import pytest
import redis
from redis import exceptions

from redis_components.connection import connect, explain
from redis_components.errors import ConfigError, RedisUnavailable
from redis_components.server.printable import masked
from tests.support.processes import wait_until
from tests.support.redis_server import RedisServer

FORK = """
import os, sys
from redis_components.connection import connect
url = sys.argv[1]
parent = connect(url)
parent.set("who", "parent")
child = os.fork()
if child == 0:
    mine = connect(url)
    assert mine.connection_pool is not parent.connection_pool
    assert mine.get("who") == b"parent"
    mine.set("who", "child")
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert connect(url).connection_pool is parent.connection_pool
assert parent.get("who") == b"child"
"""


def test_clients_of_one_url_share_a_pool_and_get_bytes(redis_url: str) -> None:
    one, two = connect(redis_url), connect(redis_url)
    one.set("a", "x")
    assert two.get("a") == b"x"
    assert one.connection_pool is two.connection_pool
    assert one.connection_pool is not connect(redis_url.replace("/0", "/1")).connection_pool


def test_the_url_is_taken_from_the_environment(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAWL_REDIS_URL", redis_url)
    assert connect().connection_pool is connect(redis_url).connection_pool


@pytest.mark.processes
def test_a_forked_child_gets_a_pool_of_its_own(redis_url: str) -> None:
    subprocess.run([sys.executable, "-W", "error", "-c", FORK, redis_url], check=True, timeout=60)


def test_options_in_the_url_win_over_the_defaults(redis_url: str) -> None:
    kwargs = connect(f"{redis_url}?socket_timeout=5").connection_pool.connection_kwargs
    assert (kwargs["socket_timeout"], kwargs["socket_connect_timeout"]) == (5.0, 30)


def test_a_command_whose_reply_got_lost_is_not_sent_again(redis_server: RedisServer, redis_client: redis.Redis) -> None:
    client = connect(f"{redis_server.url}?socket_timeout=0.2")
    wait_until(client.ping, "it is connected: 0.2 s are little on a busy machine")
    redis_server.pause()
    try:
        with pytest.raises(redis.TimeoutError):
            client.incr("n")
    finally:
        redis_server.resume()
    wait_until(client.ping, "it answers again")
    assert redis_client.get("n") == b"1"  # the server found it in its socket when it came back, once


@pytest.mark.parametrize(
    "url",
    ["amqp://h:1/0", "redis://h:port/0", "127.0.0.1:6379", "redis://[::1", "redis://user:pa/ss@h:1", "redis://:s3?cret@h:x"],
)
def test_a_url_of_another_form_is_refused_and_no_part_of_its_password_shown(url: str) -> None:
    with pytest.raises(ConfigError, match=r"is not a Redis URL: write redis://.*%-codes") as caught:
        connect(url)
    assert not any(part in str(caught.value) for part in ("pa/", "'pa'", "ss@", "s3", "cret"))
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://127.0.0.1:1/0", "redis://127.0.0.1:1/0"),
        ("redis://:secret@h:1/0?socket_timeout=5", "redis://:***@h:1/0"),
        ("rediss://user:p@ss:w/rd@h:1/2", "rediss://user:***@h:1/2"),
        ("unix://user:secret@/tmp/redis.sock", "unix://user:***@/tmp/redis.sock"),
        ("redis://h:1?password=secret", "redis://h:1"),
        ("user:secret@h:1", "user:***@h:1"),
    ],
)
def test_a_url_is_shown_without_its_password(url: str, shown: str) -> None:
    assert masked(url) == shown


@pytest.mark.processes
def test_a_server_that_is_not_there_is_explained(redis_server: RedisServer) -> None:
    with RedisServer() as gone:
        url = gone.url
    assert _failure(url) == (
        f"Redis at {masked(url)} is not running (nothing listens there): start it, correct the URL"
        " (TRAWL_REDIS_URL, or the setting REDIS_URL), or unset it to use the embedded server"
    )


@pytest.mark.parametrize("login", ["", ":wrong@", "nobody:wrong@"])
def test_a_wrong_password_is_explained(redis_server: RedisServer, login: str) -> None:
    told = _failure(f"redis://{login}127.0.0.1:{redis_server.port}/0")
    assert "does not accept the password" in told
    assert "correct user and password in the URL" in told
    assert ":wrong" not in told


def test_a_missing_permission_is_explained(redis_server: RedisServer, redis_client: redis.Redis) -> None:
    redis_client.acl_setuser("reader", enabled=True, passwords=["+pw"], commands=["+get", "+hello", "+auth"], keys=["*"])
    try:
        assert "refuses a command to this user" in _failure(f"redis://reader:pw@127.0.0.1:{redis_server.port}/0")
    finally:
        redis_client.acl_deluser("reader")


def test_a_server_that_does_not_answer_is_explained(redis_server: RedisServer) -> None:
    redis_server.pause()
    try:
        assert "does not answer in time: check host and port" in _failure(f"{redis_server.url}?socket_timeout=0.2")
    finally:
        redis_server.resume()


def test_a_database_number_that_does_not_exist_is_explained(redis_server: RedisServer) -> None:
    assert "DB index is out of range" in _failure(redis_server.url.replace("/0", "/99"))


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (exceptions.BusyLoadingError("LOADING"), "is still loading its data: wait a little"),
        (exceptions.ReadOnlyError("READONLY"), "is a read-only replica: name the primary"),
        (exceptions.OutOfMemoryError("OOM"), "is out of memory: raise its maxmemory"),
        (
            exceptions.ConnectionError("SSL: WRONG_VERSION_NUMBER"),
            "cannot agree on TLS (SSL: WRONG_VERSION_NUMBER): use rediss://",
        ),
        (exceptions.ConnectionError("Name or service not known"), "cannot be reached (Name or service not known): check host"),
        (exceptions.ResponseError("ERR unknown\ncommand"), "answered with an error (ERR unknown command): check its version"),
        (
            exceptions.ResponseError("WRONGTYPE Operation"),
            "holds something else under one of Trawl's keys (WRONGTYPE Operation): trawl doctor",
        ),
        (exceptions.ConnectionError("said s%cret"), "cannot be reached (said ***)"),
    ],
)
def test_each_kind_of_error_is_explained_in_one_line(error: Exception, told: str) -> None:
    line = str(explain(error, "redis://:s%25cret@h:1/0"))
    assert line.startswith(f"Redis at redis://:***@h:1/0 {told}")
    assert "\n" not in line


def _failure(url: str) -> str:
    """The one line that an operator sees when this URL is used."""
    with pytest.raises(redis.RedisError) as caught:
        connect(url).ping()
    told = explain(caught.value, url)
    assert isinstance(told, RedisUnavailable)
    return str(told)
