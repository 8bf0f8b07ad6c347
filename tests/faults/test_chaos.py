"""Random deaths while the living forum of the demo is crawled; at the end everything is there, once.

`make chaos` does it for ten minutes. CHAOS_SECONDS is how long the deaths go on, CHAOS_SEED which ones; the seed is printed, and
the same seed gives the same plan of deaths (their moments and victims depend on the machine, too).
"""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path

import pytest

from demo.forum.process import ForumProcess
from tests.support.chaos import Chaos, choices
from tests.support.forum_fleet import BOARDS, ForumFleet
from tests.support.processes import none_left
from tests.support.watched_fleet import MARK

SHORT = "CHAOS_SECONDS" not in os.environ  # `make test`: the same deaths each time
SECONDS = float(os.environ.get("CHAOS_SECONDS", "6"))
SEED = int(os.environ.get("CHAOS_SEED", "0")) or (7 if SHORT else random.randrange(1, 1_000_000))
SETTLE_S = 90.0 + SECONDS / 4
LIFE_PER_S = 5.0  # events in the forum
CHANGES = {"edit_rate": 0.1, "delete_rate": 0.1, "move_rate": 0.02}  # shares of them


def say(line: str) -> None:
    """For who watches (`pytest -s`), and for the report of a failure."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def test_the_same_seed_gives_the_same_plan() -> None:
    one, other, third = (choices(seed) for seed in (7, 7, 8))
    plans = [[next(plan) for _ in range(20)] for plan in (one, other, third)]
    assert plans[0] == plans[1] != plans[2]


@pytest.mark.timeout(SECONDS + SETTLE_S * 2 + 120)
def test_whatever_dies_the_whole_forum_is_stored_once_and_nobody_is_left(tmp_path: Path) -> None:
    say(f"\n{SECONDS:g} s of chaos, CHAOS_SEED={SEED}")
    with (
        none_left((MARK, str(tmp_path))),
        ForumProcess(seed=SEED, forums=BOARDS, threads=60, comments=5) as forum,
        ForumFleet(tmp_path, forum) as fleet,
    ):
        forum.control(latency_ms=20, error_rate=0.02, throttle_rate=0.01, rate=LIFE_PER_S, **CHANGES)
        fleet.wait_whole_again()
        fleet.watch.forget()
        chaos = Chaos(fleet, choices(SEED), say)
        chaos.rage(SECONDS)
        fleet.wait_whole_again()
        coverage = fleet.settle(SETTLE_S)
        say(f"{dict(chaos.dealt)}\nstored {[(one.table, one.stored, one.expected, one.edited, one.deleted) for one in coverage]}")
        assert all(one.complete for one in coverage), (coverage, f"{fleet.given_up()} given up")
        assert max(fleet.watch.most.values()) == 1, fleet.watch.crowds
        assert fleet.orphans() == []
        assert fleet.stop() == []
