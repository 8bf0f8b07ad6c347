"""What the kernel says about processes that it ended for want of memory."""

from __future__ import annotations

from pathlib import Path

from workers.process.memory import OOM_SCORE, offer_to_oom_killer, oom_kills, resident


def test_the_container_is_asked_first_then_the_machine(tmp_path: Path) -> None:
    container, machine = tmp_path / "memory.events", tmp_path / "vmstat"
    machine.write_text("pgfault 12\noom_kill 7\nkswapd 1\n")
    assert oom_kills((container, machine)) == 7
    container.write_text("low 0\nhigh 0\nmax 3\noom 1\noom_kill 1\noom_group_kill 0\n")
    assert oom_kills((container, machine)) == 1


def test_a_kernel_that_does_not_say_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "vmstat").write_text("oom_kill many\n")
    assert oom_kills((tmp_path / "none", tmp_path / "vmstat")) == 0


def test_a_process_that_is_gone_has_no_memory() -> None:
    assert resident(2**22 + 1) == 0


def test_a_crawler_raises_its_score_for_the_oom_killer_and_never_lowers_it(tmp_path: Path) -> None:
    file = tmp_path / "oom_score_adj"
    for before, after in ((0, OOM_SCORE), (900, 900), (-500, OOM_SCORE)):
        file.write_text(f"{before}\n")
        offer_to_oom_killer(file=file)
        assert int(file.read_text()) == after
    offer_to_oom_killer(file=tmp_path / "none")
