"""A command that tests fork from a process with its imports is as one that starts cold."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from cli import processes as services
from demo.forum import process
from fleet_operations.consumers import run_files
from fleet_operations.deploy import deploy
from fleet_operations.jobs import spider_list
from redis_components.embedded.child_process import ChildProcess
from tests.support import forked_crawlers, warm_start
from workers.process import forked
from workers.process.run_module import own_module
from workers.supervision import launcher

COMMAND = [sys.executable, "-W", "error", "-m", "tests.support.start_facts", "one", "--two=3"]
Run = Callable[..., Any]


@pytest.fixture(autouse=True)
def _family(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(warm_start.FAMILIES, "tests.support.start_facts", ("psutil",))
    monkeypatch.delenv("COLD_STARTS", raising=False)  # `make test-all` sets it


def facts_by(run: Run, folder: Path, **more: str) -> tuple[dict[str, Any], str, int]:
    environment = {**os.environ, "PYTHONPATH": str(warm_start.ROOT), "WORD": "größer", **more}
    options = {"cwd": folder, "env": environment, "capture_output": True, "text": True, "timeout": 60, "input": "told"}
    done = run(COMMAND, start_new_session=True, check=False, **options)
    return json.loads(done.stdout), done.stderr, done.returncode


def test_it_is_told_the_same(tmp_path: Path) -> None:
    cold, warm = facts_by(subprocess.run, tmp_path), facts_by(warm_start.run, tmp_path)
    assert warm == cold
    assert warm[0]["parent"] == os.getpid()
    assert warm[0]["read"] == "told"
    assert warm[1:] == ("said on stderr\n", 3)


def test_a_script_runs_in_the_family_that_it_is_given(tmp_path: Path) -> None:
    script = [sys.executable, "-c", "import sys; print(__name__, sys.argv, sys.path[0] == '', 'psutil' in sys.modules)", "word"]
    done = warm_start.run(script, family="tests.support.start_facts", cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout == "__main__ ['-c', 'word'] True True\n"


def test_it_can_be_killed_and_is_not_counted_as_left_before(tmp_path: Path) -> None:
    with warm_start.Popen(COMMAND, cwd=warm_start.ROOT, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
        assert process.pid in {child.pid for child in psutil.Process().children()}
        assert process.pid not in warm_start.keepers()
        process.kill()
        assert process.wait(60) == -signal.SIGKILL


def test_what_another_python_would_read_starts_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise AssertionError("forked")

    monkeypatch.setattr(warm_start._families, "start", refuse)
    (tmp_path / "redis").mkdir()
    for variable, value in (("PYTHONHASHSEED", "1"), ("PYTHONPATH", str(tmp_path)), ("PYTHONDEVMODE", "1")):
        *_, code = facts_by(warm_start.run, warm_start.ROOT, **{variable: value})
        assert code == 3, variable
    monkeypatch.setenv("COLD_STARTS", "1")
    assert facts_by(warm_start.run, tmp_path)[2] == 3


class _Forked(Exception):
    """A process would have been forked."""


def test_what_the_product_starts_is_forked_also_after_its_code_was_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred fleets of tests would start cold, for minutes of CPU, and nothing else would show it."""

    def refuse(*_: object, **__: object) -> int:
        raise _Forked

    monkeypatch.setattr(warm_start, "forked", refuse)
    for command, ends_with_us in ((own_module("fleet_operations.deploy.check_service"), False), (own_module("demo.forum"), True)):
        with pytest.raises(_Forked):
            ChildProcess(command, ends_with_us=ends_with_us)
    monkeypatch.setattr(os, "fork", refuse)
    for module in (*forked_crawlers.FORKED, *forked_crawlers.CHECKS):
        with pytest.raises(_Forked):
            forked_crawlers.fork({"args": own_module(module), "env": None}, [])
    for user in (launcher, forked, deploy, services, process):
        assert vars(user)["ChildProcess"] is ChildProcess
    for user in (run_files, spider_list):
        assert "subprocess" in vars(user)
