"""A unit test starts no process unless it is marked `processes`: `make test-fast` runs the others."""

from __future__ import annotations

import os
import subprocess
from typing import Any

import pytest


@pytest.fixture(autouse=True)
def _no_process_without_a_mark(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.node.get_closest_marker("processes"):
        return

    def refused(*_: Any, **__: Any) -> Any:
        raise AssertionError("this test starts a process: mark it with @pytest.mark.processes")

    monkeypatch.setattr(subprocess.Popen, "_execute_child", refused)
    monkeypatch.setattr(os, "fork", refused)
    monkeypatch.setattr(os, "posix_spawn", refused)
