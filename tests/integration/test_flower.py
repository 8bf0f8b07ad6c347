"""Flower, started last and looked at through its own API: crawlers with names and figures, and nobody's maintenance."""

from __future__ import annotations

import base64
import json
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from redis_components.embedded.files import free_port
from redis_components.errors import ConfigError
from tasks.flower_crawlers import refuse_open_flower
from tests.support.fleet import ToyFleet
from tests.support.processes import wait_until
from tests.unit.tasks.test_celeryconfig import run
from workers.state.beats import Schedules

OWN_TASK = """
from tasks import app

@app.task(name="mine.nightly")
def nightly():
    pass
"""


def tasks_of(port: int) -> dict[str, dict[str, Any]]:
    """What Flower knows, by task id; empty while it does not answer."""
    login = base64.b64encode(b"me:secret-word").decode()
    request = urllib.request.Request(f"http://127.0.0.1:{port}/api/tasks", headers={"Authorization": f"Basic {login}"})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            found: dict[str, dict[str, Any]] = json.load(answer)
            return found
    except OSError:
        return {}


def test_a_flower_that_starts_last_shows_each_crawler_and_no_maintenance(tmp_path: Path) -> None:
    (tmp_path / "nightly_tasks.py").write_text(OWN_TASK)
    port = free_port()
    own = {"TRAWL_TASK_MODULES": "nightly_tasks", "PYTHONPATH": str(tmp_path)}
    with ToyFleet(tmp_path, "toy=2", **own, FLOWER_BASIC_AUTH="me:secret-word") as fleet:
        fleet.node()
        fleet.beat()
        fleet.wait_whole("toy/0", "toy/1", timeout_s=60)
        fleet.program("flower", "-m", "celery", "-A", "tasks", "flower", f"--port={port}", "--address=127.0.0.1")

        def crawling() -> list[dict[str, Any]]:
            known = [one for one in tasks_of(port).values() if one["state"] == "CRAWLING"]
            return [one for one in known if "running, " in one["result"]]  # the first event of each says that it starts

        found: list[dict[str, Any]] = []

        def both() -> bool:
            found[:] = crawling()
            return len(found) == 2

        wait_until(both, lambda: f"{tasks_of(port)}\n{fleet.said()}", 60)
        assert {(one["name"], one["args"]) for one in found} == {
            ("trawl.run_crawler", "('toy', 0)"),
            ("trawl.run_crawler", "('toy', 1)"),
        }
        assert {one["worker"] for one in found} == {"a@test"}
        assert all(" pages/s" in one["result"] for one in found)

        rounds = Schedules(fleet.redis.client()).rounds
        before = rounds()["reconcile_fleet"]
        fleet.run("from cli.main import main; main(['schedule', 'set', 'nightly', '--every', '1s', '--task', 'mine.nightly'])")
        names = lambda: [one["name"] for one in tasks_of(port).values()]  # noqa: E731
        wait_until(lambda: "mine.nightly" in names(), lambda: f"an operator's task is shown: {names()}\n{fleet.said()}", 60)
        wait_until(lambda: rounds()["reconcile_fleet"] != before, lambda: f"beat sends maintenance\n{fleet.said()}")
        shown = names().count("mine.nightly")
        wait_until(lambda: names().count("mine.nightly") > shown, lambda: f"one that was sent after it\n{fleet.said()}")
        assert set(names()) == {"trawl.run_crawler", "mine.nightly"}


@pytest.mark.parametrize("address", ["", "0.0.0.0", "::", "192.0.2.7", "crawl.example.net"])
def test_an_address_that_others_reach_needs_a_login(address: str) -> None:
    with pytest.raises(ConfigError, match="without a password"):
        refuse_open_flower(address, "", asks_for_login=False)
    refuse_open_flower(address, "", asks_for_login=True)
    refuse_open_flower(address, "/run/flower.sock", asks_for_login=False)


@pytest.mark.parametrize("address", ["127.0.0.1", "127.8.0.1", "::1", "localhost"])
def test_a_loopback_address_needs_none(address: str) -> None:
    refuse_open_flower(address, "", asks_for_login=False)


@pytest.mark.parametrize(
    ("options", "environment"), [(["--address=0.0.0.0"], {}), ([], {"FLOWER_ADDRESS": "0.0.0.0"}), (["--conf=/dev/null"], {})]
)
def test_an_open_flower_does_not_start(options: list[str], environment: dict[str, str], redis_url: str) -> None:
    done = run(["-m", "celery", "-A", "tasks", "flower", *options], TRAWL_REDIS_URL=redis_url, **environment)
    assert done.returncode == 1
    assert done.stderr.startswith("Error: Flower would listen on ")
    assert len(done.stderr.splitlines()) == 1
    assert "FLOWER_BASIC_AUTH" in done.stderr
