"""A worker with all its processes, and the beat that leads, stand still for minutes (SIGSTOP) and go on: a paused machine."""

from __future__ import annotations

import logging
import os
import signal
from pathlib import Path

import pytest

from tests.attacks.attacked_fleet import AttackedFleet, Delay, InnocentSite
from tests.support.processes import wait_until
from tests.support.watched_fleet import send_all

STILL_S = float(os.environ.get("STANDS_STILL_S", "120"))


@pytest.mark.timeout(600)
def test_a_node_and_a_beat_that_stand_still_for_minutes_delay_nobody_and_do_no_harm_when_they_go_on(tmp_path: Path) -> None:
    with InnocentSite() as innocent, AttackedFleet(tmp_path, innocent, nodes="ab", beats=2) as attacked:
        fleet = attacked.fleet
        fleet.wait_ready()
        frozen = fleet.members(fleet.busiest_node())
        beat = fleet.leader()
        crawlers = {one.pid for one in frozen} & fleet.occupants().keys()
        assert crawlers
        send_all(frozen, signal.SIGSTOP)
        beat.process.send_signal(signal.SIGSTOP)
        begun, read = fleet.registry.now(), list[Delay]()
        attacked.wait_whole()  # the other node has taken over
        while fleet.registry.now() < begun + STILL_S:
            read.append(attacked.delay())
        beat.process.send_signal(signal.SIGCONT)
        send_all(frozen, signal.SIGCONT)
        wait_until(lambda: not crawlers & fleet.occupants().keys(), lambda: f"those that stood still go\n{fleet.said()}", 60)
        attacked.wait_whole()
        for _ in range(5):
            attacked.delay()
        wait_until(lambda: fleet.crawlers().keys() == set(fleet.slots), lambda: f"{fleet.crawlers()}\n{fleet.said()}")
        assert max(fleet.watch.most.values()) == 1, fleet.watch.crowds
        asked = [path for path in innocent.paths() if path.startswith("/t/")]
        assert len(asked) - len(set(asked)) <= len(crawlers), "what was in flight may be fetched again"
        slowest, lived = max(one.asked_s for one in read), max(fleet.watch.thawed.values(), default=0.0)
        said = "%d threads were read meanwhile, the slowest after %.2f s; crawlers left %.1f s after they went on"
        logging.getLogger(__name__).info(said, len(read), slowest, lived)
