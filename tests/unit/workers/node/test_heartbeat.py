"""The records of nodes in Redis, and the thread that writes them."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import redis

from tests.support.processes import wait_until
from tests.support.redis_server import RedisServer
from workers.node.heartbeat import NodeBeat
from workers.state.keys import FleetKeys
from workers.state.nodes import BACK_AFTER_S, NodeRecord, Nodes
from workers.state.registry import Registry

A = NodeRecord(name="a@test", services=("list",), capacity=4, taken=1)


def test_a_node_is_there_while_it_beats_and_gone_when_it_says_so(redis_client: redis.Redis) -> None:
    nodes, now = Nodes(redis_client), Registry(redis_client).now()
    assert nodes.all() == []
    nodes.beat(replace(A, name="b@test"))
    assert not nodes.beat(A).draining
    a, b = nodes.all()
    assert (a.name, b.name) == ("a@test", "b@test")
    assert replace(a, beat_at=0.0) == A
    assert abs(a.beat_at - now) < 60
    assert (a.alive(now + 14), a.alive(now + 20)) == (True, False)
    assert (a.is_open(now + 4), a.is_open(now + 10)) == (True, False)
    nodes.forget(["b@test"])
    nodes.forget([])
    assert [one.name for one in nodes.all()] == ["a@test"]


def test_a_node_that_is_drained_hears_it_and_stays_so_when_it_comes_back(redis_client: redis.Redis) -> None:
    nodes = Nodes(redis_client)
    nodes.beat(A)
    nodes.drain("a@test")
    assert nodes.all()[0].draining
    assert nodes.is_draining("a@test")
    nodes.forget(["a@test"])  # its worker ends, and another one starts under its name
    assert nodes.beat(A).draining
    assert nodes.all()[0].draining
    assert nodes.undrain("a@test")
    assert not nodes.undrain("a@test")
    assert not nodes.beat(A).draining
    assert not nodes.all()[0].draining


def test_names_to_drain_that_nobody_has_heard_of_for_a_week_are_forgotten(redis_client: redis.Redis) -> None:
    nodes, key = Nodes(redis_client), FleetKeys().drained_nodes()
    now = Registry(redis_client).now()
    redis_client.hset(key, mapping={"old": f"{now - 8 * 86_400:.0f}", "a@test": f"{now - 8 * 86_400:.0f}"})
    nodes.beat(A)  # a@test is drained and lives
    nodes.drain("new")
    assert redis_client.hkeys(key) == [b"a@test", b"new"]


def test_when_redis_has_lost_its_data_a_node_gets_no_launches_until_its_crawlers_have_their_slots_back(
    redis_client: redis.Redis,
) -> None:
    nodes, registry = Nodes(redis_client), Registry(redis_client)
    answer = nodes.beat(A, nodes.beat(A))
    assert nodes.all()[0].is_open(registry.now())
    redis_client.flushall()
    answer = nodes.beat(A, answer)
    (back,) = nodes.all()
    assert not back.is_open(registry.now())
    assert back.is_open(back.back_at + BACK_AFTER_S)
    nodes.beat(A, answer)
    assert nodes.all()[0].back_at == back.back_at


def test_records_of_a_newer_version_are_read_and_others_are_left_out(redis_client: redis.Redis) -> None:
    newer = {"name": "a", "capacity": 2, "beat_at": 5.5, "colour": "blue"}
    redis_client.hset(FleetKeys().nodes(), mapping={"a": json.dumps(newer), "b": "nonsense", "c": "{}"})
    assert Nodes(redis_client).all() == [NodeRecord(name="a", capacity=2, beat_at=5.5)]


@pytest.mark.processes
def test_a_node_beats_until_it_says_goodbye() -> None:
    with RedisServer() as server:
        nodes = Nodes(server.client())
        beat = NodeBeat(nodes, lambda: A, period_s=0.05)
        beat.start()
        first = wait_until(nodes.all, "the node has said that it is there")[0]
        assert (first.capacity, first.started_at > 0) == (4, True)
        server.stop()  # nobody waits for Redis, and the beat is heard again when it is back
        server.start()
        wait_until(lambda: nodes.all(), "the node is heard again")
        beat.stop()
        assert nodes.all() == []


@pytest.mark.processes
def test_a_node_ends_although_redis_is_away() -> None:
    with RedisServer() as server:
        nodes = Nodes(server.client())
        beat = NodeBeat(nodes, lambda: A, period_s=0.05)
        beat.start()
        wait_until(nodes.all, "the node has said that it is there")
        server.stop()
        beat.stop()
