"""The digest of a configuration changes with what decides how a crawler works, and with nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from workers.process.config_digest import config_digest


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's project: `scrapy.cfg`, a package with settings and a spider, a folder of site files; not on Python's path."""
    for name, text in {
        "scrapy.cfg": "[settings]\ndefault = shop.settings\n",
        "shop/settings.py": "BOT_NAME = 'shop'\n",
        "shop/spiders/prices.py": "class Prices: ...\n",
        "sites/demo.toml": "base_url = 'http://127.0.0.1'\n",
        "shop/venv/pyvenv.cfg": "home = /usr\n",
        "shop/venv/lib.py": "",
        "shop/data.sqlite": "",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SCRAPY_SETTINGS_MODULE", raising=False)
    return tmp_path


@pytest.mark.parametrize("name", ["shop/settings.py", "shop/spiders/prices.py", "shop/spiders/new.py", "sites/demo.toml"])
def test_a_touched_source_changes_it(project: Path, name: str) -> None:
    before = config_digest({})
    assert config_digest({}) == before
    with (project / name).open("a") as file:
        file.write("# mended\n")
    assert config_digest({}) != before


@pytest.mark.parametrize("name", ["shop/data.sqlite", "shop/venv/lib.py", "shop/__pycache__/settings.py", "notes.py"])
def test_what_crawlers_do_not_read_does_not(project: Path, name: str) -> None:
    before = config_digest({})
    (project / name).parent.mkdir(exist_ok=True)
    (project / name).write_text("# other")
    assert config_digest({}) == before


def test_the_same_files_elsewhere_have_the_same_digest(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = config_digest({})
    twin = project.parent / f"{project.name}-twin"
    project.rename(twin)
    monkeypatch.chdir(twin)
    assert config_digest({}) == before


def test_variables_count_but_not_those_of_one_node_and_none_is_readable(project: Path) -> None:
    plain = config_digest({})
    assert config_digest({"TRAWL_REDIS_URL": "redis://:secret@host"}) != plain
    assert config_digest({"TRAWL_DATA_DIR": "/elsewhere", "TRAWL_NODE": "b", "PATH": "/bin"}) == plain
    assert len(plain) == 12
