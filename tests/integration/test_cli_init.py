"""`trawl init`: the project works as it is, with Trawl's spiders and one's own, and nothing is ever overwritten."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from cli.main import main
from redis_components.server.fleet_file import TABLES
from tests.support import compose_file, warm_start
from tests.support.fleet import ROOT

SPIDER = """
from redis_components.spiders import RedisSpider

class Books(RedisSpider):
    name = "books"
"""


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """In the project's folder, as a person would, without any variable of Trawl's."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("TRAWL_", "SCRAPY_"))}
    environment["PYTHONPATH"] = str(ROOT)
    return warm_start.run(
        [sys.executable, "-m", *command], cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False
    )


def test_a_new_project_finds_trawls_spiders_and_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "My Forums"
    assert main(["init", str(folder)]) == 0
    said = capsys.readouterr().out
    assert f"Next, for a forum: cd {shlex.quote(str(folder))}, then trawl watch" in said
    assert "write one into my_forums/spiders, then trawl services add" in said
    (folder / "my_forums" / "spiders" / "books.py").write_text(SPIDER)
    assert run(folder, "scrapy.cmdline", "list").stdout.split() == ["books", "forum_detail", "forum_list"]
    (folder / ".env").write_text("TRAWL_FLEET=books=2\n")
    shown = {row["variable"]: row for row in json.loads(run(folder, "cli.main", "config", "show", "--json").stdout)}
    assert shown["TRAWL_FLEET"]["value"] == "books=2"
    assert str(folder / "sites") in run(folder, "cli.main", "sites", "list").stderr
    config = folder / "trawl.toml"
    config.write_text(re.sub(r"(?m)^#(?=[\[a-z])", "", config.read_text()))  # every example in it is right
    assert (run(folder, "cli.main", "config", "check").stderr, tomllib.loads(config.read_text()).keys()) == ("", set(TABLES))
    assert (folder / ".env").stat().st_mode & 0o077 == 0


def test_its_override_brings_it_into_the_containers_that_crawl(tmp_path: Path) -> None:
    folder = tmp_path / "news"
    assert main(["init", str(folder)]) == 0
    override = yaml.safe_load((folder / "compose.override.yml").read_text())["services"]
    services = compose_file.services({**compose_file.example(), "TRAWL_REDIS_PASSWORD": "x"})
    for name in ("beat", "exporter"):
        assert override.pop(name)["volumes"] == ["${PWD}/trawl.toml:/app/trawl.toml:ro"], "the schedule, the services"
    assert override.keys() == {name for name, one in services.items() if "/app/sites" in one.volumes}
    for service in override.values():
        mounts = [mount.rsplit(":", 2) for mount in service["volumes"]]
        assert [place for _, place, _ in mounts] == ["/app/scrapy.cfg", "/app/trawl.toml", "/app/sites", "/app/news"]
        assert all(mode == "ro" and (folder / Path(source).name).exists() for source, _, mode in mounts)


@pytest.mark.parametrize(
    ("folder", "package"), [("forums", "forums_spiders"), ("2026 news", "my_spiders"), ("论坛", "my_spiders")]
)
def test_a_package_is_named_after_the_folder_where_that_can_be(
    folder: str, package: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["init", str(tmp_path / folder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["package"] == package


def test_nothing_is_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_text("MINE=1\n")
    assert main(["init", "--package", "mine"]) == 2
    assert ".env exists already" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == [".env"]
    (tmp_path / ".env").unlink()
    assert main(["init", "--package", "mine", "--json"]) == 0
    assert "mine/settings.py" in json.loads(capsys.readouterr().out)["files"]


@pytest.mark.parametrize("name", ["forums", "Mine", "1st", "a-b", "", "../x"])
def test_a_package_needs_a_name_that_is_free(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", str(tmp_path / "forums"), "--package", name]) == 2
    assert "choose another" in capsys.readouterr().err
    assert not (tmp_path / "forums").exists()


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    assert main(["init", str(tmp_path / "file" / "new")]) == 2
    assert "name a file that can be read, or a place that this user may write" in capsys.readouterr().err
