"""The fleet as an operator runs it: `celery -A tasks worker` and `beat`, real crawlers, and everything that may die."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.support.fleet import ToyFleet
from tests.support.processes import wait_until

pytestmark = pytest.mark.usefixtures("no_process_left")


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[ToyFleet]:
    with ToyFleet(tmp_path, "toy=1,toy_two=1") as fleet:
        fleet.beat()
        yield fleet


def test_a_fleet_comes_up_heals_scales_and_drains(fleet: ToyFleet) -> None:
    node = fleet.node()
    first = fleet.wait_whole("toy/0", "toy_two/0")
    assert {r.node for r in first.values()} == {"a@test"}

    # A launch that is delivered twice finds the slot held.
    assert fleet.ask("run_crawler.delay('toy', 0).get(timeout=10)") == "held"

    # A crawler that is killed is back.
    psutil.Process(first["toy/0"].pid).kill()
    killed_at = time.monotonic()
    second = fleet.wait_whole("toy/0", "toy_two/0", but_not=[first["toy/0"].pid])
    assert time.monotonic() - killed_at < 10
    assert second["toy/0"].last_exit == "killed (SIGKILL)"
    assert second["toy_two/0"].pid == first["toy_two/0"].pid

    # So is one whose supervisor, a process of the worker's pool, is killed; no orphan is left.
    psutil.Process(psutil.Process(second["toy/0"].pid).ppid()).kill()
    third = fleet.wait_whole("toy/0", "toy_two/0", but_not=[second["toy/0"].pid])
    assert third["toy/0"].token != second["toy/0"].token

    assert fleet.ask("scale_fleet.delay(toy=2, toy_two=0).get(timeout=10)") == "{'toy': 2, 'toy_two': 0}"
    fleet.wait_whole("toy/0", "toy/1")

    node.process.send_signal(signal.SIGTERM)
    asked_at = time.monotonic()
    assert node.wait(10) == 0
    assert time.monotonic() - asked_at < 6
    assert not fleet.processes()
    assert all(view.token is None for view in fleet.registry.slots({"toy": 2, "toy_two": 1}, []))


def test_when_a_node_is_killed_another_takes_over_and_sigquit_ends_that_gracefully(fleet: ToyFleet) -> None:
    doomed = fleet.node("a")
    first = fleet.wait_whole("toy/0", "toy_two/0")
    heir = fleet.node("b")
    doomed.process.kill()
    killed_at = time.monotonic()
    second = fleet.wait_whole("toy/0", "toy_two/0", but_not=[r.pid for r in first.values()], timeout_s=30)
    assert time.monotonic() - killed_at < 30
    assert {r.node for r in second.values()} == {"b@test"}

    heir.process.send_signal(signal.SIGQUIT)
    asked_at = time.monotonic()
    heir.wait(15)
    assert time.monotonic() - asked_at < 10
    wait_until(lambda: not fleet.processes(), fleet.said)
    for log in (fleet.folder / "data" / "logs").iterdir():
        assert log.read_text().count("Spider closed (shutdown)") == 2
