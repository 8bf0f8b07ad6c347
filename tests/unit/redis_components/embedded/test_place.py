"""Where data is kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from redis_components.embedded import data_dir
from redis_components.embedded.files import PORTS, ServerFolder


def test_the_data_folder_is_beside_the_nearest_scrapy_cfg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRAWL_DATA_DIR")
    (tmp_path / "project" / "deep" / "down").mkdir(parents=True)
    (tmp_path / "project" / "scrapy.cfg").touch()
    monkeypatch.chdir(tmp_path / "project" / "deep" / "down")
    assert data_dir() == tmp_path / "project" / "data"


def test_the_data_folder_is_in_the_working_folder_where_there_is_no_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TRAWL_DATA_DIR")
    monkeypatch.chdir(tmp_path)
    assert data_dir() == tmp_path / "data"
    assert not data_dir().exists()


def test_a_named_data_folder_wins_and_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "scrapy.cfg").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRAWL_DATA_DIR", "elsewhere")
    assert data_dir() == tmp_path / "elsewhere"


def test_port_and_password_stay_and_a_new_port_keeps_the_password(tmp_path: Path) -> None:
    place = ServerFolder(root=tmp_path / "redis")
    place.create()
    first = place.access()
    assert place.access() == first
    moved = place.access(new_port=True)
    assert place.access() == moved
    assert (moved.password, moved.port != first.port) == (first.password, True)
    assert {first.port, moved.port} <= set(PORTS)
    assert len(first.password) == 32
