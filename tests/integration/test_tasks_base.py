"""What a task becomes when Redis refuses in its middle: an expected failure of one line; a wrong command stays a fault."""

from __future__ import annotations

import pytest
import redis
from celery import Celery

from redis_components.connection import connect
from redis_components.errors import RedisUnavailable, TrawlError
from tasks.base import FleetTask


class Writes(FleetTask):
    """Writes one key."""

    name = "tests.writes"
    ignore_result = True

    def run(self) -> None:
        connect().set("written", "1")


class Wrong(FleetTask):
    """Counts with a value that is no number."""

    name = "tests.wrong"
    ignore_result = True

    def run(self) -> None:
        connect().incr("written")


APP = Celery("tests.tasks_base", set_as_current=False)
WRITES, WRONG = APP.register_task(Writes()), APP.register_task(Wrong())


@pytest.mark.parametrize(
    ("refuse", "accept", "said"),
    [
        (("REPLICAOF", "127.0.0.1", "1"), ("REPLICAOF", "NO", "ONE"), "read-only replica"),
        (("ACL", "SETUSER", "default", "-@write"), ("ACL", "SETUSER", "default", "+@all"), "refuses a command to this user"),
        (("CONFIG", "SET", "min-replicas-to-write", "1"), ("CONFIG", "SET", "min-replicas-to-write", "0"), "too few replicas"),
    ],
)
def test_a_redis_that_refuses_is_an_expected_failure(
    redis_client: redis.Redis,
    redis_url: str,
    monkeypatch: pytest.MonkeyPatch,
    refuse: tuple[str, ...],
    accept: tuple[str, ...],
    said: str,
) -> None:
    monkeypatch.setenv("TRAWL_REDIS_URL", redis_url)
    redis_client.execute_command(*refuse)
    try:
        with pytest.raises(RedisUnavailable, match=said) as refused:
            WRITES()
    finally:
        redis_client.execute_command(*accept)
    assert isinstance(refused.value, Writes.throws), "Celery writes no traceback of it"
    WRITES()
    assert redis_client.get("written") == b"1"


def test_another_password_in_the_middle_is_one_too(
    redis_client: redis.Redis, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAWL_REDIS_URL", redis_url.replace("//:", "//:not-"))
    with pytest.raises(RedisUnavailable, match="does not accept the password"):
        WRITES()


def test_a_wrong_command_stays_a_fault_of_trawl(
    redis_client: redis.Redis, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAWL_REDIS_URL", redis_url)
    redis_client.set("written", "no number")
    with pytest.raises(redis.ResponseError) as fault:
        WRONG()
    assert not isinstance(fault.value, TrawlError)
