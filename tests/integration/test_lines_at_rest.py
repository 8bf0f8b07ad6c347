"""The log of a worker at rest: no line for the tasks that beat sends each second and that have done nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.fleet import ToyFleet
from tests.support.processes import wait_until
from workers.state.beats import Schedules


@pytest.mark.usefixtures("no_process_left")
def test_what_beat_sends_and_has_done_nothing_is_not_logged_and_what_users_send_is(tmp_path: Path) -> None:
    with ToyFleet(tmp_path, "toy=0") as fleet:
        node = fleet.node("a", "--loglevel=INFO")
        fleet.beat()
        rounds = Schedules(fleet.redis.client()).rounds
        seen: set[float] = set()

        def beat_goes_on() -> bool:
            seen.update(one.due for name, one in rounds().items() if name == "store_items")
            return len(seen) > 3

        wait_until(beat_goes_on, lambda: f"beat sends\n{fleet.said()}")
        assert fleet.ask("scale_fleet.delay(toy=0).get(timeout=60)") == "{'toy': 0}"

        def found() -> list[tuple[str, str]]:
            return re.findall(r"Task (trawl\.\w+)\[\S+ (received|succeeded)", node.said())

        wait_until(
            lambda: {("trawl.scale_fleet", one) for one in ("received", "succeeded")} <= set(found()),
            lambda: f"what a user sends is logged\n{fleet.said()}",
        )
        assert not [one for one in found() if one[0] in ("trawl.store_items", "trawl.seed_due", "trawl.sample_fleet")]
