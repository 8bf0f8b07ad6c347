"""`make install` says how far it is, and what pip said is kept."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.processes
def test_a_failure_is_that_of_pip_and_is_in_the_log(tmp_path: Path) -> None:
    log = tmp_path / "pip.log"
    done = subprocess.run(
        [sys.executable, ROOT / "packaging/install.py", log, "--no-index", "./no-such-folder"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode != 0
    assert "no-such-folder" in log.read_text()
    assert "no-such-folder" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.processes
def test_a_log_gets_a_line_and_no_control_characters(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "nothing-at-all"\nversion = "1"\n')
    options = ["--no-index", "--no-build-isolation", "--no-deps", "--target", tmp_path / "into", tmp_path]
    done = subprocess.run(
        [sys.executable, ROOT / "packaging/install.py", tmp_path / "pip.log", *options],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, (tmp_path / "pip.log").read_text()
    assert "installing 1 packages" in done.stdout
    assert "\r" not in done.stdout
    assert "\x1b" not in done.stdout
