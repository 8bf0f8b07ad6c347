"""A node's condition, from what is seen of its worker, and what is wrong with a data folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from workers.node.health import (
    STILL_LIMIT_S,
    Condition,
    NodeHealth,
    NodeStatus,
    StatusFile,
    condition,
    folder_fault,
)
from workers.process import pipes
from workers.process.heartbeat import Heartbeat

WELL = {"connected": True, "loop_silent_s": 1.0, "beat_silent_s": 1.0, "folder_fault": None}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, Condition.OK),
        ({"loop_silent_s": STILL_LIMIT_S - 1}, Condition.OK),
        ({"loop_silent_s": STILL_LIMIT_S + 1}, Condition.HUNG),
        ({"beat_silent_s": STILL_LIMIT_S - 1}, Condition.OK),
        ({"beat_silent_s": STILL_LIMIT_S + 1}, Condition.HUNG),
        ({"connected": False, "beat_silent_s": STILL_LIMIT_S + 1}, Condition.HUNG),
        ({"folder_fault": "full", "beat_silent_s": STILL_LIMIT_S + 1}, Condition.HUNG),
        ({"connected": False, "loop_silent_s": 10 * STILL_LIMIT_S}, Condition.WAITS),
        ({"connected": False, "folder_fault": "read-only"}, Condition.BROKEN),
    ],
)
def test_a_node_hangs_when_its_loop_or_heartbeat_stands_and_is_broken_when_no_crawler_can_start(
    change: dict[str, object], expected: Condition
) -> None:
    assert condition(NodeStatus(**{**WELL, **change}))[0] is expected  # type: ignore[arg-type]


def test_a_tick_between_two_looks_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread that looks sleeps nearly always: a tick that comes then must not be overwritten by what it had read before."""
    health = NodeHealth(StatusFile("worker", tmp_path), tmp_path, hosted=lambda: 0)
    health.connected(True)
    health._loop_at -= 10 * STILL_LIMIT_S

    def sleep(_: float) -> float:
        health.tick()
        health.stop()
        return 0.0

    monkeypatch.setattr(pipes, "sleep", sleep)
    health._run()
    assert condition(health.look())[0] is Condition.OK


def test_a_heartbeat_that_died_of_anything_is_noticed_and_one_that_was_frozen_is_excused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def beat() -> None:
        raise RuntimeError("a fault of ours")

    monkeypatch.setattr("threading.excepthook", lambda _: None)
    heartbeat = Heartbeat(beat)
    heartbeat.start()
    heartbeat._thread.join(60)
    heartbeat._turned_at -= 10 * STILL_LIMIT_S
    health = NodeHealth(StatusFile("worker", tmp_path), tmp_path, hosted=lambda: 0)
    health.beat_at = lambda: heartbeat.turned_at
    health._thawed_at -= 10 * STILL_LIMIT_S
    assert condition(health.look())[0] is Condition.HUNG

    def sleep(_: float) -> float:
        health.stop()
        return 10 * STILL_LIMIT_S  # it was frozen for so long

    monkeypatch.setattr(pipes, "sleep", sleep)
    health._run()
    assert condition(health.look())[0] is Condition.WAITS


def test_a_data_folder_that_is_a_file_or_another_users_is_a_fault(tmp_path: Path) -> None:
    assert folder_fault(tmp_path / "made" / "later") is None
    (tmp_path / "file").write_text("")
    assert "is not a folder" in (folder_fault(tmp_path / "file" / "data") or "")
    if os.geteuid():  # root may write everywhere
        (tmp_path / "locked").mkdir(mode=0o500)
        assert "change its owner" in (folder_fault(tmp_path / "locked" / "data") or "")
