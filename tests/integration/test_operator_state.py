"""Redis loses everything, and what operators have said is there again, from the database."""

from __future__ import annotations

from pathlib import Path

import pytest
import redis

from forums.writer.store import store
from redis_components.keys import CrawlKeys, limits_key
from redis_components.politeness import limits
from tests.support.trawl_command import Trawl, commands
from workers.state.keys import FleetKeys
from workers.state.registry import Registry

SERVICES = ("forum_list", "forum_detail")


@pytest.fixture
def trawl(redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Trawl:
    """Commands with a Redis, a data folder and a database of their own."""
    return commands(redis_url, tmp_path, monkeypatch, capfd)


def say_everything(trawl: Trawl) -> None:
    for command in (
        ("scale", "forum_list=3"),
        ("autoscale", "forum_detail", "--min", "1", "--max", "4"),
        ("pause", "--site", "example", "--reason", "they complain"),
        ("drain", "forum_detail"),
        ("limit", "example", "--rate", "0.5"),
        ("schedule", "set", "seed_forums", "--every", "77"),
    ):
        said = trawl(*command)
        assert said.code == 0, (command, said.err)


def test_what_operators_have_said_survives_a_flushall_and_what_they_said_since_stays(
    trawl: Trawl, redis_client: redis.Redis
) -> None:
    say_everything(trawl)
    store(redis_client, SERVICES)
    holds, paused = FleetKeys().holds(), "site:example"
    before = {key: redis_client.hgetall(key) for key in (FleetKeys().schedule(), limits_key(), holds)}
    redis_client.flushall()
    assert trawl("scale", "forum_list=1").code == 0, "said after the loss"

    store(redis_client, SERVICES)
    assert redis_client.hget(FleetKeys().desired(), "forum_list") == b"1"
    assert redis_client.hgetall(FleetKeys().schedule()) == before[FleetKeys().schedule()]
    assert redis_client.hget(holds, paused) == before[holds][paused.encode()]
    assert redis_client.hget(CrawlKeys.for_spider("forum_detail").holds(), "spider"), "a service is drained again"
    assert limits.read(redis_client, limits_key())["example"].rate == 0.5
    assert redis_client.hget(limits_key(), "version") != before[limits_key()][b"version"], "crawlers notice"
    assert trawl("autoscale", "forum_detail", "--off").code == 0, "a service sizes itself again"
    (error,) = Registry(redis_client).errors()
    assert "put back from the database" in error.what
    assert "put back from the database" in trawl("status").out

    assert trawl("resume", "--site", "example").code == 0
    store(redis_client, SERVICES)
    store(redis_client, SERVICES)
    assert not redis_client.hexists(holds, paused), "what was let go is not put back while Redis remembers"
    redis_client.flushall()
    store(redis_client, SERVICES)
    assert not redis_client.hexists(holds, paused)


def test_a_namespace_gets_its_own_state_only_and_a_new_fleet_gets_none(
    trawl: Trawl, redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert trawl("scale", "forum_list=3").code == 0
    store(redis_client, SERVICES)
    monkeypatch.setenv("TRAWL_NAMESPACE", "job7")
    store(redis_client, SERVICES)
    assert redis_client.hgetall(FleetKeys().desired()) == {}
    assert Registry(redis_client).errors() == []
