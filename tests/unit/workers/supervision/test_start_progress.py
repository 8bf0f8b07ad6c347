"""When a crawler that has said nothing yet is taken for hung: by CPU time, not by the wall clock."""

from __future__ import annotations

from workers.supervision.launcher import StartProgress


def test_a_start_that_gets_a_twentieth_of_a_core_is_waited_for() -> None:
    start = StartProgress(60)
    assert not any(start.hangs(silent_s=float(second), cpu_s=second / 20) for second in range(600))


def test_a_start_that_gets_no_cpu_time_hangs_after_the_limit() -> None:
    start = StartProgress(60)
    found = [second for second in range(200) if start.hangs(silent_s=float(second), cpu_s=min(2.0, second))]
    assert found[0] == 63  # it worked for 2 s


def test_a_start_that_spins_hangs_after_the_limit_of_cpu_time() -> None:
    start = StartProgress(60)
    assert not start.hangs(silent_s=60, cpu_s=60)
    assert start.hangs(silent_s=61, cpu_s=61)


def test_a_start_that_only_wakes_up_now_and_then_hangs() -> None:
    start = StartProgress(60)
    assert any(start.hangs(silent_s=float(second), cpu_s=2 + second / 1000) for second in range(130))
