"""Each way to die, on real Celery workers: two nodes and two beats on one machine, real crawlers on a site that counts.

One fleet suffers one death after another, as in life; each row is a crawl of its own, from its seed to its last page.
Two rows take more than a minute each and have a shorter sister here: `make chaos` runs them (DEATHS=all). `make test` plays the
rows that differ most (tests/conftest.py names the others), `make test-all` each. The long form, a new
fleet for each row and Redis away for a minute, is `python -m benchmarks deaths`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.deaths import Toll, measure_death
from tests.support.mortal_fleet import MortalFleet
from tests.support.processes import none_left
from tests.support.watched_fleet import MARK
from tests.support.ways_to_die import Death

AWAY_S = 4.0  # Redis; a minute in the long form
SLACK = 4.0  # how fast is the table's business: here a busy machine may take longer
SETTINGS = "WATCHDOG_TIMEOUT = 4\n"
# Their shorter sisters: the same with its pool child killed, and the interpreter held.
LONG = () if os.environ.get("DEATHS") == "all" else (Death.CRAWLER_FROZEN, Death.REACTOR_HUNG)


class SharedFleet:
    """The fleet of the rows before; another one after a row that failed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._fleets = 0
        self._fleet: MortalFleet | None = None
        self._stack = ExitStack()

    def measure(self, death: Death) -> Toll:
        with ExitStack() as after_a_failure:
            after_a_failure.callback(self.close)
            fleet = self._whole_fleet()
            toll = measure_death(death, fleet, away_s=AWAY_S)
            after_a_failure.pop_all()
        return toll

    def _whole_fleet(self) -> MortalFleet:
        if self._fleet is None:
            self._fleets += 1
            folder = self._folder / str(self._fleets)
            folder.mkdir()
            self._stack.enter_context(none_left((MARK, str(folder))))
            self._fleet = self._stack.enter_context(MortalFleet(folder, settings=SETTINGS))
        else:
            self._fleet.replace_crawlers()  # the deaths of the rows before do not count against a slot
        return self._fleet

    def stop(self) -> list[str]:
        return self._fleet.stop() if self._fleet else []

    def close(self) -> None:
        self._fleet = None
        self._stack.close()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedFleet]:
    """At the end everything is told to stop: then no process may be left, no lease, no slot that is held."""
    shared = SharedFleet(tmp_path_factory.mktemp("deaths"))
    try:
        yield shared
        assert shared.stop() == []
    finally:
        shared.close()


@pytest.mark.parametrize("death", [death for death in Death if death not in LONG], ids=lambda death: death.label)
def test_the_fleet_is_whole_again_and_nothing_is_lost_after(death: Death, shared: SharedFleet) -> None:
    toll = shared.measure(death)
    assert (toll.lost, toll.orphans, toll.most, toll.late) == (0, 0, 1, 0)
    assert toll.whole_s <= SLACK * death.limit_s
