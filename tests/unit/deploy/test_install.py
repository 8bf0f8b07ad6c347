"""`make install` where no package index can be reached: one line that says so, and no second try that waits as long."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[3]
CUT_OFF = "error: Failed to fetch: `http://127.0.0.1:9/simple/celery/`\n  Caused by: error sending request for url"


@pytest.fixture
def install() -> ModuleType:
    spec = importlib.util.spec_from_file_location("install", ROOT / "packaging" / "install.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("said", "first"), [(CUT_OFF, "no package index can be reached"), ("a hash differs", "a hash differs")])
@pytest.mark.parametrize("step", ["packages", "pip"])
def test_want_of_a_network_is_said_in_one_line(
    install: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    said: str,
    first: str,
    step: str,
) -> None:
    commands: list[str] = []
    arguments: list[str] = []

    def run(here: object, what: str, *command: str, path: str = "") -> None:
        commands.append(what)
        arguments.append(" ".join(command))
        if what in (step, "packages"):
            (tmp_path / "install.log").write_text(said)
            raise install.Failed

    monkeypatch.setattr(install.Installation, "_run", run)
    monkeypatch.setenv("UV", "")
    monkeypatch.setattr(install.shutil, "which", lambda _name: None)
    failed = install.main([str(tmp_path), "environment" if step == "pip" else "packages"])
    told = capsys.readouterr()
    if said != CUT_OFF and step == "pip":
        assert (failed, commands[-1]) == (0, "the pip of this Python")
        return
    assert failed == 1
    assert told.err.startswith(first)
    assert commands[-1] == step or said != CUT_OFF
    if said != CUT_OFF:
        assert commands.count("packages") == 2
        assert f"--no-deps --require-hashes -r {install.LOCKED}" in arguments[commands.index("packages")]
        assert f"{install.LOCKED} cannot be installed here" in told.out
        assert arguments[-1].endswith(f"-e . -c {install.PINS}")
