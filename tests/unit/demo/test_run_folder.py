"""The folders of the demo's runs."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from unittest.mock import patch

import pytest

from cli import processes as node_services
from demo import processes
from demo.processes import FLEET, KEPT_RUNS, RunFolder, RunFolderError
from forums.sites import load_all
from redis_components.embedded import files
from tests.support.fleet import ROOT


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRAWL_DATA_DIR", str(tmp_path / "data"))
    return tmp_path / "data" / "demo"


def test_each_run_has_an_empty_folder_of_its_own_also_two_in_one_second(runs: Path) -> None:
    one, two = RunFolder.fresh(), RunFolder.fresh()
    assert one.path != two.path
    for folder in (one, two):
        assert folder.path.parent == runs
        assert [path.name for path in folder.path.rglob("*")] == ["logs"]


def test_old_runs_are_removed_but_neither_one_that_still_runs_nor_what_is_not_a_run(runs: Path) -> None:
    for day in range(1, 6):
        (runs / f"2026010{day}-120000" / "redis").mkdir(parents=True)
    (runs / "my-notes").mkdir()
    keeper = runs / "20260101-120000" / "redis" / "keeper.lock"
    with files.held(keeper):
        folder = RunFolder.fresh()
    left = sorted(path.name for path in runs.iterdir())
    assert left == ["20260101-120000", "20260104-120000", "20260105-120000", folder.path.name, "my-notes"]
    assert KEPT_RUNS == 3


def test_a_folder_that_cannot_be_written_is_named(runs: Path) -> None:
    runs.parent.mkdir()
    runs.write_text("a file where the folder should be")
    with pytest.raises(RunFolderError, match="TRAWL_DATA_DIR") as refused:
        RunFolder.fresh()
    assert str(runs) in str(refused.value)


def test_a_run_sees_nothing_of_the_users_fleet_and_only_the_demos_site(runs: Path, tmp_path: Path) -> None:
    theirs = tmp_path / "sites"
    theirs.mkdir()
    (theirs / "mine.toml").write_text('base_url = "https://mine.example"\n')
    folder = RunFolder.fresh()
    users = {
        "TRAWL_SITES_DIR": str(theirs),
        "TRAWL_REDIS_URL": "redis://theirs",
        "TRAWL_DATABASE_URL": "postgresql://theirs",
        "TRAWL_TASK_MODULES": "shop.tasks",
        "TRAWL_AUTOSCALE": "1",
        "TRAWL_DEMO_THREADS": "7",
    }
    with patch.dict(os.environ, users):
        folder.take_over_environment("http://127.0.0.1:1", FLEET)
        assert {name: value for name, value in os.environ.items() if name.startswith("TRAWL_")} == {
            "TRAWL_DEMO_THREADS": "7",
            "TRAWL_DEMO_RUN": str(folder.path),
            "TRAWL_ENV_FILE": "",
            "TRAWL_DATA_DIR": str(folder.path),
            "TRAWL_SITES_DIR": str(ROOT / "demo" / "sites"),
            "TRAWL_CONFIG": str(folder.path / "trawl.toml"),
            "TRAWL_DEMO_URL": "http://127.0.0.1:1",
            "TRAWL_FLEET": FLEET,
        }
        assert sorted(site.name for site in load_all()[0]) == ["demo"]


@pytest.mark.processes
def test_a_terminal_in_which_somebody_looks_around_is_given_the_same(runs: Path) -> None:
    folder = RunFolder.fresh()
    with patch.dict(os.environ):
        folder.take_over_environment("http://127.0.0.1:1", FLEET)
        same = {name: os.environ[name] for name in ("TRAWL_SITES_DIR", "TRAWL_CONFIG", "TRAWL_DEMO_URL", "TRAWL_FLEET")}
    command = ["sh", "-c", f"{folder.terminal} && exec env"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert {f"{name}={value}" for name, value in same.items()} | {f"TRAWL_DATA_DIR={folder.path}"} <= set(shown)


def test_a_run_leaves_the_ports_of_trawl_up_free() -> None:
    assert not {processes.FLOWER_PORT, processes.EXPORTER_PORT} & {node_services.FLOWER_PORT, node_services.EXPORTER_PORT}


def test_no_site_of_the_demo_is_among_those_of_a_production_fleet() -> None:
    assert not list((ROOT / "sites").glob("*.toml"))
