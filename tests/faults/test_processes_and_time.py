"""Faults of machines that last: a pid is given to somebody else, Redis is put back to the snapshot of another day."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from redis_components.admin.inspector import snapshot
from tests.faults.test_promises import nothing_is_missing, reach
from tests.support.crawl import crawl
from tests.support.processes import wait_until
from tests.support.redis_server import RedisServer
from workers.node.host import _end_stray

PAGES = 200


@pytest.mark.parametrize("alive", [False, True], ids=["crawlers have ended", "a crawler is at work"])
def test_a_redis_that_is_put_back_to_another_days_snapshot_crawls_again_what_it_forgot(tmp_path: Path, alive: bool) -> None:
    with RedisServer(aof=True) as server, crawl(server.url, tmp_path, pages=PAGES, latency_s=0.05) as run:
        run.seed()
        first = run.start()
        reach(run, 0.2)
        server.remember()
        remembered = snapshot(server.client(), run.spider)
        reach(run, 0.7)
        if not alive:
            assert first.wait(60) == 0, run.log()
        server.kill_and_forget()
        assert snapshot(server.client(), run.spider).acked <= remembered.acked + 64, "it forgot most of it"
        if not alive:
            assert run.start().wait(100) == 0, run.log()
        assert first.wait(100) == 0, run.log()
        nothing_is_missing(run)
        assert max(run.hits().values()) <= 3, "what was forgotten is fetched again, once, and what was in flight"


@contextmanager
def stopped(*command: str) -> Iterator[psutil.Process]:
    process = subprocess.Popen(command, start_new_session=True)
    try:
        process.send_signal(signal.SIGSTOP)
        found = psutil.Process(process.pid)
        wait_until(lambda: found.status() == psutil.STATUS_STOPPED, "it stands still")
        yield found
    finally:
        process.kill()
        process.wait()


def test_a_pid_that_somebody_else_has_got_is_not_killed(tmp_path: Path) -> None:
    noted = tmp_path / "0"
    script = "import sys, time; print(sys.argv); time.sleep(1000)"
    ours = f"--parent={psutil.Process().pid}"
    for command in (
        ("sleep", "1000"),
        (sys.executable, "-c", script, "workers.crawler.log"),
        (sys.executable, "-c", script, "workers.crawler", ours),  # another node's, whose supervisor lives
    ):
        with stopped(*command) as stranger:
            noted.write_text(str(stranger.pid))
            _end_stray(noted)
            assert stranger.status() == psutil.STATUS_STOPPED, command
    gone = subprocess.Popen(["true"])
    gone.wait()
    with stopped(sys.executable, "-c", script, "workers.crawler", f"--parent={gone.pid}") as stray:
        noted.write_text(str(stray.pid))
        _end_stray(noted)
        wait_until(lambda: stray.status() == psutil.STATUS_ZOMBIE, "a frozen crawler without its supervisor is ended")
