"""A job that gets no crawler says what it waits for: `trawl job start --wait` and `trawl job show`."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest
import redis

from tests.support.trawl_command import commands
from workers.jobs.orders import MAKE_ROOM, NO_NODE, delay
from workers.state.jobs import Jobs, JobState
from workers.state.nodes import NodeRecord, Nodes
from workers.state.registry import Registry

NODE = "a@test"
FULL = f"1 wanted, no room for 1: the nodes that serve it offer 1, all taken; {MAKE_ROOM}"


def test_a_job_without_a_crawler_says_what_it_waits_for(
    redis_url: str, redis_client: redis.Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    trawl = commands(redis_url, tmp_path, monkeypatch, capfd)
    monkeypatch.setenv("TRAWL_FLEET", "books=1")
    trawl("job", "start", "books", "--id", "one")
    store, registry = Jobs(redis_client), Registry(redis_client)
    job = store.all()["books.one"]
    assert delay(redis_client, job) == NO_NODE
    services = ("books", "books.one", "books.two")
    Nodes(redis_client).beat(NodeRecord(name=NODE, services=services, capacity=1, beat_at=registry.now()))
    assert delay(redis_client, job) == "", "it is about to be launched"
    registry.acquire("books", 0, NODE)
    assert delay(redis_client, job) == FULL
    assert f"waits: {FULL}" in trawl("job", "show", "one").out
    trawl("stop", "--all")
    assert delay(redis_client, job) == "the fleet is stopped: trawl resume --all"
    trawl("resume", "--all")

    naps: list[float] = []

    def nap(seconds: float) -> None:
        naps.append(seconds)
        if len(naps) == 3:
            store.swap(replace(store.all()["books.two"], state=JobState.FINISHED, reason="finished"))

    monkeypatch.setattr(time, "sleep", nap)
    monkeypatch.setattr("cli.commands.job.DELAY_S", 0.0)
    said = trawl("job", "start", "books", "--id", "two", "--wait")
    assert said.code == 0
    assert said.err.count(f"waits: {FULL}") == 1
