"""The fleet as an operator runs it: `celery -A tasks worker` and `beat`, real crawlers. What may die is in tests/faults."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.fleet import ToyFleet

pytestmark = pytest.mark.usefixtures("no_process_left")


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[ToyFleet]:
    with ToyFleet(tmp_path, "toy=1,toy_two=1") as fleet:
        fleet.beat()
        yield fleet


def test_a_fleet_comes_up_scales_and_drains(fleet: ToyFleet) -> None:
    node = fleet.node()
    first = fleet.wait_whole("toy/0", "toy_two/0")
    assert {r.node for r in first.values()} == {"a@test"}

    # A launch that is delivered twice finds the slot held.
    assert fleet.ask("run_crawler.delay('toy', 0).get(timeout=60)") == "held"

    assert fleet.ask("scale_fleet.delay(toy=2, toy_two=0).get(timeout=60)") == "{'toy': 2, 'toy_two': 0}"
    fleet.wait_whole("toy/0", "toy/1")

    node.process.send_signal(signal.SIGTERM)
    assert node.wait(60) == 0
    assert "SIGKILL" not in node.said(), "each crawler ended within its grace"
    assert not fleet.processes()
    assert all(view.token is None for view in fleet.registry.slots({"toy": 2, "toy_two": 1}, []))
