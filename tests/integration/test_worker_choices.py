"""What celeryconfig.py chooses about delivery and processes, with real workers: why no crawler is run twice, stuck or cut off."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
import redis

from tests.support.fleet import Program, ToyFleet
from tests.support.processes import arguments, wait_until
from workers.state.keys import FleetKeys
from workers.state.nodes import NodeRecord

pytestmark = pytest.mark.usefixtures("no_process_left")

QUEUE = "crawlers.toy"
INBOXES = "_kombu.binding.celery.pidbox"


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[ToyFleet]:
    with ToyFleet(tmp_path, "toy=2") as fleet:
        yield fleet


def bound(client: redis.Redis) -> set[str]:
    """The nodes that the broker knows of."""
    return set(re.findall(r"[\w-]+@\w+", b" ".join(client.smembers(INBOXES)).decode()))


def pool(node: Program) -> set[int]:
    """Its processes that live, those that end just now left out."""
    children = psutil.Process(node.process.pid).children()
    return {p.pid for p in children if (words := arguments(p)) and "workers.crawler" not in words}


@pytest.mark.timeout(600)
def test_a_crawlers_task_is_neither_stuck_nor_delivered_again_nor_ended_for_its_pools_sake(fleet: ToyFleet) -> None:
    client = fleet.redis.client()

    # A node with one process: it is taken for days, and the second launch stays in the queue, for a node that is free.
    fleet.ask("[run_crawler.delay('toy', 0), run_crawler.delay('toy', 1)]")
    first = fleet.node("a", "-Q", QUEUE, "--concurrency=1", "--loglevel=INFO")
    fleet.wait_whole("toy/0", timeout_s=60)
    assert client.llen(QUEUE) >= 1
    assert fleet.ask("app.control.inspect(timeout=60, limit=1).reserved()") == "{'a@test': []}"

    # Of the first one there is no copy that a visibility timeout could bring back.
    assert not client.exists("unacked", "unacked_index")

    # Pool processes are replaced after each task, and for a little memory: those that host a crawler are not.
    second = fleet.node("b", "-Q", f"{QUEUE},control", "--concurrency=4", "--max-tasks-per-child=1", "--max-memory-per-child=1")
    crawlers = fleet.wait_whole("toy/0", "toy/1", timeout_s=60)
    assert {r.node for r in crawlers.values()} == {"a@test", "b@test"}
    hosts = {name: psutil.Process(r.pid).ppid() for name, r in crawlers.items()}
    before = pool(second)

    # What a node that was killed has left in the broker goes with its record.
    client.hset(FleetKeys().nodes(), "dead@x", NodeRecord(name="dead@x", services=("toy",), capacity=1).to_json())
    client.sadd(INBOXES, "\x06\x16\x06\x16dead@x.celery.pidbox")
    assert fleet.ask("{scale_fleet.delay(toy=2).get(timeout=60)['toy'] for _ in range(4)}") == "{2}"
    wait_until(lambda: len(before - pool(second)) >= 2, fleet.said)  # the last ones are still being replaced
    wait_until(lambda: bound(client) == {"a@test", "b@test"}, lambda: f"{bound(client)} are bound; {fleet.said()}")
    assert {name: r.pid for name, r in fleet.wait_whole("toy/0", "toy/1").items()} == {n: r.pid for n, r in crawlers.items()}
    assert {name: psutil.Process(r.pid).ppid() for name, r in crawlers.items()} == hosts

    # Redis is killed while a worker has taken a message that no process has begun, and comes back empty: the workers go on, with
    # the same crawlers.
    idle = [psutil.Process(pid) for pid in pool(second) if pid not in hosts.values()]
    for process in idle:
        process.suspend()
    fleet.ask("scale_fleet.delay(toy=2).id")
    wait_until(lambda: client.llen("control") == 0, fleet.said)
    fleet.redis.kill()
    fleet.redis.start()
    for process in idle:
        with suppress(psutil.NoSuchProcess):  # it was one of those that were being replaced
            process.resume()
    answer = fleet.ask("scale_fleet.delay(toy=2).get(timeout=60)")
    assert answer == "{'toy': 2}", answer + fleet.said()
    assert {name: r.pid for name, r in fleet.wait_whole("toy/0", "toy/1").items()} == {n: r.pid for n, r in crawlers.items()}
    assert first.process.poll() is None

    # A node that leaves takes its own along.
    second.process.terminate()
    assert second.wait(60) == 0
    assert "b@test" not in bound(client)
    assert "mingle" not in first.said()
