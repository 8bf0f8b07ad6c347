"""Crawlers' logs and their history, as an operator sees them: in the worker's log, by `trawl logs`, by `trawl history`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.support import warm_start
from tests.support.fleet import ROOT, Program, ToyFleet, program
from tests.support.processes import wait_until

pytestmark = pytest.mark.usefixtures("no_process_left")

TRAWL = ["-m", "cli.main"]

NO_ROOM = """
from tasks import crawl_once
first = crawl_once.delay("toy", {"mode": "crawl"}, timeout=6)
second = crawl_once.delay("toy", {"mode": "crawl"}, timeout=6)
for sent in (first, second):
    try:
        print(sent.get(timeout=60)["outcome"])
    except Exception as error:
        print(type(error).__name__, error)
"""


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[ToyFleet]:
    with ToyFleet(tmp_path, "toy=1,toy_two=1", TRAWL_LOG_MAX_MB="0.001", TRAWL_LOG_FILES="99") as fleet:
        yield fleet


def trawl(fleet: ToyFleet, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *TRAWL, *words]
    return warm_start.run(command, cwd=ROOT, env=fleet.environment, capture_output=True, text=True, timeout=60, check=False)


def test_what_crawlers_say_is_in_the_workers_log_and_can_be_followed(fleet: ToyFleet, tmp_path: Path) -> None:
    node = fleet.node("a", "--loglevel=INFO")
    logs = Path(fleet.environment["TRAWL_DATA_DIR"]) / "logs"
    fleet.ask("run_crawler.delay('toy', 0).id, run_crawler.delay('toy_two', 0).id")
    first = fleet.wait_whole("toy/0", "toy_two/0", timeout_s=60)

    def followed(said: Program) -> int:
        return sum("Spider opened" in json.loads(line)["text"] for line in said.said().splitlines())

    follow = [*TRAWL, "logs", "toy/0", "-f", "-n", "1000", "--json"]
    with program(follow, fleet.environment, tmp_path / "follow.log") as following:
        wait_until(lambda: followed(following) == 1, following.said, 60)
        wait_until(lambda: (logs / "toy-0.log.1").exists(), "the log is rotated while the crawler runs")
        psutil.Process(first["toy/0"].pid).kill()
        second = fleet.wait_whole("toy/0", "toy_two/0", but_not=[first["toy/0"].pid], timeout_s=60)
        wait_until(lambda: followed(following) == 2, following.said)
        following.process.send_signal(2)
        assert following.wait() == 0

    for name, record in (*first.items(), *second.items()):
        line = f"[{name} {record.pid}] scrapy.core.engine: Spider opened"
        wait_until(lambda line=line: line in node.said(), lambda line=line: f"{line} is in {node.said()}")

    # Small crawls have what its crawlers and the fleet's own tasks leave over: one process.
    refused, crawled = sorted(fleet.run(NO_ROOM, timeout_s=150).splitlines())
    assert crawled == "timeout"
    assert refused.startswith("NoRoom a@test runs 1 small crawls already")
    assert "queue='once'" in refused

    both = trawl(fleet, "logs", "-n", "10000").stdout
    assert "toy/0 │ " in both
    assert "toy_two/0 │ " in both
    assert len(trawl(fleet, "logs", "-n", "2").stdout.splitlines()) == 2
    assert "Enabled " not in both, "the lists of Scrapy are in the files only"

    def history() -> dict[str, Any]:
        return {run["id"]: run for run in json.loads(trawl(fleet, "history", "toy/0", "--json").stdout)}

    token = first["toy/0"].token
    wait_until(lambda: list(history()) == [f"toy/0#{token}.1", f"toy/0#{token}.0"], lambda: f"both are told of: {history()}")
    found = history()
    killed = found[f"toy/0#{token}.0"]
    assert (killed["crawler"], killed["outcome"], killed["exit_code"]) == ("toy/0", "killed", -9)
    assert (killed["node"], killed["pid"]) == ("a@test", first["toy/0"].pid)


def test_a_worker_whose_terminal_is_stuck_still_supervises(fleet: ToyFleet) -> None:
    ours, theirs = os.pipe()  # nobody reads it
    command = [sys.executable, "-m", "celery", "-A", "tasks", "worker", "-n", "a@test", "--loglevel=INFO"]
    with subprocess.Popen(
        command, cwd=ROOT, env=fleet.environment, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, start_new_session=True
    ) as worker:
        try:
            fleet.ask("run_crawler.delay('toy', 0).id")
            (first,) = fleet.wait_whole("toy/0", timeout_s=60).values()
            # Another descriptor of the same pipe: that it does not wait must not count for the worker's.
            full = os.open(f"/proc/self/fd/{theirs}", os.O_WRONLY | os.O_NONBLOCK)
            with pytest.raises(BlockingIOError):
                while True:
                    os.write(full, b"x" * 4096)
            with pytest.raises(BlockingIOError):
                while True:
                    os.write(full, b"x")
            for _ in range(2):
                psutil.Process(first.pid).kill()
                (first,) = fleet.wait_whole("toy/0", but_not=[first.pid], timeout_s=60).values()
            log = Path(fleet.environment["TRAWL_DATA_DIR"]) / "logs"
            said = "".join(path.read_text() for path in log.glob("toy-0.log*"))
            assert said.count("Spider opened") == 3, "the file has everything"
        finally:
            worker.kill()
            for fd in (ours, theirs, full):
                os.close(fd)
