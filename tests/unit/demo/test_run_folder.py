"""The folders of the demo's runs."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from unittest.mock import patch

import pytest

from cli import processes as node_services
from demo import processes
from demo.processes import FLEET, RunFolder, RunFolderError
from forums.sites import load_all
from redis_components.embedded import files
from tests.support.fleet import ROOT


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRAWL_DATA_DIR", str(tmp_path / "data"))
    return tmp_path / "data" / "demo"


def test_each_run_begins_with_an_empty_folder(runs: Path) -> None:
    (runs / "redis").mkdir(parents=True)
    folder = RunFolder.fresh()
    assert folder.path == runs
    assert [path.name for path in folder.path.rglob("*")] == ["logs"]


def test_a_run_that_goes_on_is_not_disturbed(runs: Path) -> None:
    (runs / "redis").mkdir(parents=True)
    with files.held(runs / "redis" / "keeper.lock"), pytest.raises(RunFolderError, match="another demo runs"):
        RunFolder.fresh()
    assert (runs / "redis").is_dir()


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
