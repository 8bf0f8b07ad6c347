"""Two workers of one name: both are told, and it is shown; a worker that follows another one of its name is not blamed."""

from __future__ import annotations

import threading

import pytest
import redis

from cli.main import main as trawl
from tests.support.processes import wait_until
from workers.node.heartbeat import NodeBeat
from workers.state.nodes import NodeRecord, Nodes

RECORD = NodeRecord(name="same@host", services=("forum_list",), capacity=1)


def beats(client: redis.Redis, told: list[str]) -> NodeBeat:
    """The beats of one worker, as often as its tests like."""
    return NodeBeat(Nodes(client), lambda: RECORD, report=told.append, period_s=0.02)


def test_two_workers_of_one_name_are_noticed_by_both(
    redis_client: redis.Redis, redis_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRAWL_REDIS_URL", redis_url)
    told: tuple[list[str], list[str]] = ([], [])
    both = [beats(redis_client, one) for one in told]
    for one in both:
        one.start()
    try:
        wait_until(lambda: all(told) and Nodes(redis_client).all()[0].rivals, "both are told")

        def said(command: str) -> str:  # the record is written by the one and by the other
            assert trawl([command]) == (command == "status"), "status ends with 1 where something needs attention"
            return " ".join(capsys.readouterr().out.split())

        wait_until(lambda: "name used twice" in said("status"), "the table of nodes says so")
        wait_until(lambda: "two workers have this name" in said("status"), "trawl status says so")
    finally:
        for one in both:
            one.stop()
    assert "give each worker a unique name" in told[0][0]


def test_a_worker_that_follows_another_of_its_name_is_not_blamed(redis_client: redis.Redis) -> None:
    nodes, told = Nodes(redis_client), list[str]()
    first = nodes.beat(RECORD.__class__(**{**vars(RECORD), "instance": "a" * 16}))
    assert first.instance == ""
    beaten = threading.Event()
    follower = NodeBeat(nodes, lambda: RECORD, before=beaten.set, report=told.append, period_s=0.02)
    follower.start()
    for _ in range(5):
        beaten.clear()
        beaten.wait(60)
    follower.stop()
    assert told == []
