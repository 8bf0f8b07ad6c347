"""`trawl history` of runs in Redis, and without a fleet."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
import redis

from cli.main import main
from workers.state.history import Run, RunBy, Runs

NOW = datetime.now(UTC).timestamp()
CRASHED = Run(
    id="list/0#1.0",
    spider="list",
    by=RunBy.FLEET,
    number=0,
    token=1,
    node="a@far",
    pid=11,
    started_at=NOW - 7200,
    ended_at=NOW - 3600,
    outcome="crashed",
    exit_code=1,
    reason="it broke",
    pages=1234,
    items=5,
    peak_rss_bytes=100 << 20,
)
KILLED = replace(CRASHED, id="list/0#1.1", started_at=NOW - 3600, ended_at=NOW - 60, outcome="killed", exit_code=-9, reason=None)
BY_HAND = Run(id="hand-12@a#1", spider="detail", by=RunBy.HAND, node="a", pid=12, started_at=NOW - 30)


@pytest.fixture(autouse=True)
def environment(tmp_path: Path, redis_url: str, redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two runs that are over, one that goes on."""
    monkeypatch.setenv("TRAWL_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("TRAWL_REDIS_URL", redis_url)
    begun = time.time() - 30  # not NOW: it may be long since this was imported
    for run in (CRASHED, KILLED, replace(BY_HAND, started_at=begun)):
        Runs(redis_client).add(run)


def ids(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    assert main(["history", *words, "--json"]) == 0
    return [run["id"] for run in json.loads(capsys.readouterr().out)]


def test_people_see_when_how_long_how_and_why(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history"]) == 0
    _, by_hand, killed, crashed = (line.split() for line in capsys.readouterr().out.splitlines())
    assert by_hand[4:8] == ["detail/hand-12", "running", "0", "0"]
    assert killed[2:7] == ["59", "min", "list/0", "killed", "(SIGKILL)"]
    assert crashed[2:] == ["60", "min", "list/0", "crashed", "1,234", "5", "100", "MiB", "a@far", "it", "broke"]


def test_programs_get_times_in_utc_and_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history", "list", "-n", "1", "--json"]) == 0
    (run,) = json.loads(capsys.readouterr().out)
    assert (run["crawler"], run["outcome"], run["exit_code"], run["seconds"], run["items"]) == ("list/0", "killed", -9, 3540.0, 5)
    assert run["started_at"].endswith("Z")
    assert datetime.fromisoformat(run["started_at"]).timestamp() == pytest.approx(NOW - 3600, abs=1.0)


def test_runs_are_chosen(capsys: pytest.CaptureFixture[str]) -> None:
    assert ids(capsys) == [BY_HAND.id, KILLED.id, CRASHED.id]
    assert ids(capsys, "list/0", "--since", "90m") == [KILLED.id]
    assert ids(capsys, "list/1") == []


def test_without_a_fleet_it_states_that(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delenv("TRAWL_REDIS_URL")
    assert main(["history"]) == 0
    assert "Nothing is running here" in capsys.readouterr().out
