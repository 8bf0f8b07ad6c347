"""A crawler that has spoken and is silent now is taken for hung, but not for the time that it waits for a CPU."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

from tests.support.processes import wait_until
from workers.process.exit_kinds import ExitKind
from workers.process.pipes import HandshakeLimits
from workers.state.registry import CrawlerRecord
from workers.supervision.launcher import Watch, waited_s


class Silent:
    """What a watch asks of a crawler."""

    terms = HandshakeLimits()
    record: Any = object.__new__(CrawlerRecord)

    def __init__(self, silent_s: float, starved_s: float) -> None:
        self.silent_s = silent_s
        self._starved_s = starved_s

    def starved_s(self) -> float:
        return self._starved_s

    def resident(self) -> int:
        return 0


@pytest.mark.parametrize(
    ("silent", "starved", "hung"), [(8, 0, True), (8, 0.9, True), (8, 2, False), (90, 80, True), (90, 84, False)]
)
def test_silence_counts_without_the_time_that_it_waited_for_a_cpu(silent: float, starved: float, hung: bool) -> None:
    crawler: Any = Silent(silent, starved)
    found = Watch(crawler, silence_s=7.0, start_s=60.0).trouble()
    assert (found is not None) == hung
    assert found is None or found[0] is ExitKind.HUNG


@pytest.mark.processes
def test_two_processes_on_one_cpu_wait_for_each_other() -> None:
    cpu = min(os.sched_getaffinity(0))
    code = f"import os; os.sched_setaffinity(0, [{cpu}])\nwhile True: pass"
    spinning = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(2)]
    try:
        wait_until(lambda: all(waited_s(one.pid) > 0.05 for one in spinning), lambda: "no wait for a CPU was seen", 60)
    finally:
        for one in spinning:
            one.kill()
            one.wait()
    assert waited_s(spinning[0].pid) == 0.0, "it is gone"
