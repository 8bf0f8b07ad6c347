"""`trawl schedule` against a running fleet: what is changed takes effect, a round is begun once, a bad entry stops nothing."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import warm_start
from tests.support.fleet import ROOT, ToyFleet
from tests.support.processes import wait_until
from workers.state.beats import Schedules
from workers.state.keys import FleetKeys

pytestmark = pytest.mark.usefixtures("no_process_left")

KEYS = FleetKeys()
NOTES = "own:notes"
EACH_ROUND_TWICE = """
from tasks import app
for due in (1000.0, 1005.0):  # the second when the first has run: of two pool processes either may be first
    headers = {"trawl_round": ["again", 7, due]}
    for sent in [app.send_task("own.note", ["round"], headers=headers, ignore_result=False) for _ in range(2)]:
        sent.get(timeout=60)
app.send_task("own.note", ["round"], ignore_result=False).get(timeout=60)
"""
A_CRON_THAT_IS_NOT_DUE = """
from cli.main import main
words = ["--cron", "0 3 1 1 *", "--task", "own.note", "--args", '["year"]']
print([main(["schedule", *command]) for command in (["set", "own", *words], ["disable", "store_items"])])
"""


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[ToyFleet]:
    with ToyFleet(tmp_path, "toy=1", TRAWL_TASK_MODULES="tests.support.own_tasks") as fleet:
        yield fleet


def trawl(fleet: ToyFleet, *words: str) -> tuple[int, str]:
    """Exit code and output of `trawl schedule ...`; on an error what it said about it."""
    command = [sys.executable, "-m", "cli.main", "schedule", *words]
    done = warm_start.run(command, cwd=ROOT, env=fleet.environment, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout or done.stderr


def test_an_operators_own_task_is_scheduled_changed_and_removed_while_the_fleet_runs(fleet: ToyFleet) -> None:
    client = fleet.redis.client()
    fleet.node("a", "-Q", "control", "--concurrency=2")
    beat = fleet.beat("--loglevel=INFO")
    wait_until(lambda: client.hexists(KEYS.beat_runs(), "store_items"), fleet.said, 60)

    client.hset(KEYS.schedule(), mapping={"foreign": b"\x80\x04pickle", "wrong": b'{"task": "nix", "every_s": 5}'})
    code, said = trawl(fleet, "set", "own", "--every", "1s", "--task", "own.note", "--args", '["tick"]')
    assert (code, said) == (0, "own: own.note every 1 s; beat applies it within 2 s\n")
    wait_until(lambda: client.llen(NOTES) >= 2, fleet.said)
    assert set(client.lrange(NOTES, 0, 99)) == {b"tick"}
    for line in ("foreign is left out: cannot be read", "wrong: unknown task 'nix'; known are own.note, trawl."):
        wait_until(lambda line=line: line in beat.said(), beat.said)  # type: ignore[misc]
    told = lambda: {error.what.split(":")[0] for error in fleet.registry.errors()}  # noqa: E731
    wait_until(lambda: told() == {"foreign is left out", "wrong is left out"}, lambda: f"both are told: {told()}")

    code, said = trawl(fleet, "list", "--json")
    rows = {row["entry"]: row for row in json.loads(said)["entries"]}
    assert (rows["own"]["origin"], rows["own"]["every_s"], rows["own"]["refused"]) == ("added", 1.0, None)
    assert rows["own"]["last_sent"]
    assert "cannot be read" in rows["foreign"]["refused"]

    # Sent or delivered twice: one effect. What a person sends has no round, and runs each time.
    fleet.run(EACH_ROUND_TWICE)
    assert client.lrange(NOTES, 0, 9999).count(b"round") == 3, fleet.said()

    assert trawl(fleet, "remove", "own") == (0, "own: removed\n")
    wait_until(lambda: "own" not in Schedules(client).rounds(), fleet.said)  # the leader has heard it
    assert fleet.run(A_CRON_THAT_IS_NOT_DUE).splitlines()[-1] == "[0, 2]"
    assert b"year" not in client.lrange(NOTES, 0, 9999)
    assert "Traceback" not in fleet.said()
