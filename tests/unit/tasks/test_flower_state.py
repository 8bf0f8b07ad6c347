"""The file in which Flower keeps what it knows, before Flower is started again."""

from __future__ import annotations

import shelve
from pathlib import Path
from typing import Any

import pytest
from flower.events import EventsState

from tasks.flower_crawlers import NO_EVENT, stop_crawlers


def event(uuid: str, kind: str, at: float, **fields: Any) -> dict[str, Any]:
    known = {
        "uuid": uuid,
        "hostname": "a@test",
        "timestamp": at,
        "local_received": at,
        "clock": int(at),
        "name": "trawl.run_crawler",
    }
    return known | {"type": kind} | fields


def test_only_what_was_running_is_stopped_and_the_next_event_of_it_counts(tmp_path: Path) -> None:
    path, state = str(tmp_path / "flower"), EventsState(max_tasks_in_memory=10)
    for one in ("lives", "ended"):
        state.event(event(one, "task-crawling", 1.0, result="running, 3.0 pages/s"))
    state.event(event("failed", "task-failed", 1.0, exception="no key"))
    with shelve.open(path) as kept:
        kept["events"] = state

    assert stop_crawlers(path) == 2
    assert stop_crawlers(path) == 0

    with shelve.open(path) as kept:
        again = kept["events"]
    again.event(event("lives", "task-crawling", 2.0, result="running, 4.0 pages/s"))
    assert {uuid: (one.state, one.result) for uuid, one in again.tasks.items()} == {
        "lives": ("CRAWLING", "running, 4.0 pages/s"),
        "ended": ("STOPPED", NO_EVENT),
        "failed": ("FAILURE", None),
    }


@pytest.mark.parametrize("content", [None, b"", b"not a database", b"GDBM" * 100])
def test_a_file_that_is_none_is_left_to_flower(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "flower"
    if content is not None:
        path.write_bytes(content)
    assert stop_crawlers(str(path)) == 0
    assert path.exists() is (content is not None)
    assert content is None or path.read_bytes() == content


def test_a_state_of_another_kind_is_left_to_flower(tmp_path: Path) -> None:
    path = str(tmp_path / "flower")
    with shelve.open(path) as kept:
        kept["events"] = "a text"
    assert stop_crawlers(path) == 0
