"""The folders of the demo's runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from demo.place import KEPT_RUNS, PlaceError, RunPlace
from redis_components.embedded import locks


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRAWL_DATA_DIR", str(tmp_path / "data"))
    return tmp_path / "data" / "demo"


def test_each_run_has_an_empty_folder_of_its_own_also_two_in_one_second(runs: Path) -> None:
    one, two = RunPlace.fresh(), RunPlace.fresh()
    assert one.folder != two.folder
    for place in (one, two):
        assert place.folder.parent == runs
        assert [path.name for path in place.folder.rglob("*")] == ["logs"]


def test_old_runs_are_removed_but_neither_one_that_still_runs_nor_what_is_not_a_run(runs: Path) -> None:
    for day in range(1, 6):
        (runs / f"2026010{day}-120000" / "redis").mkdir(parents=True)
    (runs / "my-notes").mkdir()
    keeper = runs / "20260101-120000" / "redis" / "keeper.lock"
    with locks.held(keeper):
        place = RunPlace.fresh()
    left = sorted(path.name for path in runs.iterdir())
    assert left == ["20260101-120000", "20260104-120000", "20260105-120000", place.folder.name, "my-notes"]
    assert KEPT_RUNS == 3


def test_a_folder_that_cannot_be_written_is_named(runs: Path) -> None:
    runs.parent.mkdir()
    runs.write_text("a file where the folder should be")
    with pytest.raises(PlaceError, match="TRAWL_DATA_DIR") as refused:
        RunPlace.fresh()
    assert str(runs) in str(refused.value)
