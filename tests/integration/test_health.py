"""The health checks of a real worker and a real beat: frozen, without Redis, and where no crawler can start."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.support.fleet import ToyFleet
from tests.support.processes import wait_until
from workers.node import health_check
from workers.node.health import LIMIT_S
from workers.state.reports import Troubles

pytestmark = pytest.mark.usefixtures("no_process_left")


def _check(folder: Path, role: str) -> tuple[int, str]:
    """As a container does it."""
    command = [sys.executable, "-I", "-S", health_check.__file__, f"{folder}/{role}"]
    done = subprocess.run(command, env={"PATH": os.environ["PATH"]}, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, (done.stdout or done.stderr).strip()


def _aged(folder: Path, role: str) -> None:
    """As if the process had said its last word so long ago."""
    (path,) = [one for one in folder.iterdir() if one.name.startswith(f"{role}@")]
    at, rest = path.read_text().split(" ", 1)
    path.write_text(f"{float(at) - LIMIT_S - 1:.1f} {rest}")


def test_frozen_is_unhealthy_waiting_for_redis_is_healthy_and_a_data_folder_is_needed(tmp_path: Path) -> None:
    health = tmp_path / "health"
    with ToyFleet(tmp_path, "toy=1", TRAWL_HEALTH_DIR=str(health)) as fleet:
        assert _check(health, "worker")[0] == 1
        node, beat = fleet.node(), fleet.beat()
        wait_until(lambda: "hosts 1 crawlers" in _check(health, "worker")[1], fleet.said, 90)
        assert _check(health, "worker")[0] == 0
        wait_until(lambda: _check(health, "beat")[0] == 0 and "leads" in _check(health, "beat")[1], fleet.said, 60)

        for process, role in ((node.process, "worker"), (beat.process, "beat")):
            process.send_signal(signal.SIGSTOP)
            wait_until(lambda pid=process.pid: psutil.Process(pid).status() == psutil.STATUS_STOPPED, "it stands still")  # type: ignore[misc]
            _aged(health, role)
            code, said = _check(health, role)
            assert code == 1, said
            assert "has not reported for" in said
            process.send_signal(signal.SIGCONT)
            wait_until(lambda role=role: _check(health, role)[0] == 0, fleet.said, 60)  # type: ignore[misc]

        fleet.redis.pause()
        assert (_check(health, "worker")[0], _check(health, "beat")[0]) == (0, 0)
        fleet.redis.resume()
        fleet.redis.stop()
        wait_until(lambda: "waits for the broker" in _check(health, "worker")[1], fleet.said, 90)
        wait_until(lambda: "Redis" in _check(health, "beat")[1], fleet.said, 90)
        assert (_check(health, "worker")[0], _check(health, "beat")[0]) == (0, 0)
        fleet.redis.start()
        wait_until(lambda: "it hosts" in _check(health, "worker")[1], fleet.said, 90)

        for program in (node, beat):
            program.process.send_signal(signal.SIGTERM)
            program.wait(60)
            assert "Traceback" not in program.said()
        assert list(health.iterdir()) == [], "who ends as it should leaves nothing"

        (tmp_path / "file").write_text("")
        fleet.environment["TRAWL_DATA_DIR"] = str(tmp_path / "file" / "data")
        broken = fleet.node("b")
        wait_until(lambda: "is not a folder: set TRAWL_DATA_DIR" in _check(health, "worker")[1], fleet.said, 90)
        assert _check(health, "worker")[0] == 1
        troubles = Troubles(fleet.registry.client)
        said = "no crawler starts here: "
        wait_until(lambda: any(said in one.what for one in troubles.all(fleet.registry.now())), fleet.said, 60)
        assert f"this machine: {said}" in broken.said()
        assert "Traceback" not in broken.said()
