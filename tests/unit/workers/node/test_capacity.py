"""A node's places for crawlers, and its crawlers' log files."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import ExitStack, nullcontext, suppress
from pathlib import Path

import psutil
import pytest

from redis_components.errors import ConfigError
from tasks.node import check_pool
from tests.support.processes import wait_until
from workers.logs.slot_log import LogLimits, SlotLog, last_words
from workers.node.host import NodeCapacity

HOLD_A_PLACE = """
import sys, time
from pathlib import Path
from workers.node.host import NodeCapacity
with NodeCapacity(Path(sys.argv[1]), "a", 1).place():
    time.sleep(60)
"""
LAUNCH_AND_DIE = """
import os, subprocess, sys
from pathlib import Path
from workers.node.host import NodeCapacity
with NodeCapacity(Path(sys.argv[1]), "a", 1).place() as place:
    command = [sys.executable, "-c", "import time; time.sleep(60)", "workers.crawler", f"--parent={os.getpid()}"]
    child = subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL)
    place.note(child.pid)
    print(child.pid, flush=True)
    sys.stdin.read()
"""
FORK_THEN_SET = """
import os, sys
from workers.node.host import DrainFlag
flag = DrainFlag()
read, write = os.pipe()
if not (pid := os.fork()):
    os.read(read, 1)
    os._exit(42 if flag.is_set() else 1)
flag.set()
os.write(write, b"!")
code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
flag.clear()
sys.exit(1 if flag.is_set() else code)
"""


def test_a_node_hosts_as_many_crawlers_as_it_has_places(tmp_path: Path) -> None:
    room = NodeCapacity(tmp_path / "run", "celery@host/../1", 2)
    with ExitStack() as stack:
        assert [stack.enter_context(room.place()) is not None for _ in range(3)] == [True, True, False]
        assert room.taken() == 2
        assert {path.parent for path in tmp_path.rglob("*.lock")} == {tmp_path / "run"}  # whatever a node is called
    assert room.taken() == 0


def test_nodes_do_not_share_their_places(tmp_path: Path) -> None:
    with NodeCapacity(tmp_path, "a", 1).place() as one, NodeCapacity(tmp_path, "b", 1).place() as other:
        assert one
        assert other


@pytest.mark.processes
def test_the_place_of_a_process_that_is_killed_is_free(tmp_path: Path) -> None:
    room = NodeCapacity(tmp_path, "a", 1)
    process = subprocess.Popen([sys.executable, "-c", HOLD_A_PLACE, str(tmp_path)])
    try:
        wait_until(lambda: room.taken() == 1, "the process has the place")
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert room.taken() == 0


@pytest.mark.processes
def test_a_crawler_that_stood_still_when_its_supervisor_was_killed_is_ended(tmp_path: Path) -> None:
    room = NodeCapacity(tmp_path, "a", 1)
    command = [sys.executable, "-c", LAUNCH_AND_DIE, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as supervisor:
        assert supervisor.stdout
        crawler = psutil.Process(int(supervisor.stdout.readline()))
        try:
            crawler.suspend()
            wait_until(lambda: crawler.status() == psutil.STATUS_STOPPED, "it stands still")
            room.end_strays()
            assert crawler.is_running(), "its supervisor lives"
            supervisor.kill()
            supervisor.wait()
            crawler.resume()
            wait_until(lambda: crawler.status() != psutil.STATUS_STOPPED, "it goes on")
            room.end_strays()
            assert crawler.is_running(), "it ends by itself"
            crawler.suspend()
            wait_until(lambda: crawler.status() == psutil.STATUS_STOPPED, "it stands still")
            room.end_strays()
            wait_until(lambda: not crawler.is_running() or crawler.status() == psutil.STATUS_ZOMBIE, "it is killed")
        finally:
            with suppress(psutil.NoSuchProcess):
                crawler.kill()


@pytest.mark.processes
def test_a_drain_flag_is_seen_across_a_fork() -> None:
    # In a process of its own: pytest has threads, and those do not go with fork.
    assert subprocess.run([sys.executable, "-c", FORK_THEN_SET], timeout=60, check=False).returncode == 42


@pytest.fixture
def log(tmp_path: Path) -> SlotLog:
    return SlotLog(tmp_path / "logs" / "toy-0.log", LogLimits(max_bytes=10, kept=3))


def append(log: SlotLog, text: str) -> None:
    fd = log.open()
    os.write(fd, text.encode())
    os.close(fd)


def test_a_log_is_appended_to_until_it_is_large_and_then_rotated(log: SlotLog) -> None:
    append(log, "one\n")
    append(log, "two, too long\n")
    assert last_words(log) == ["one", "two, too long"]
    for n in range(6):
        append(log, f"number {n} is long\n")
    assert sorted(path.name for path in log.path.parent.iterdir()) == ["toy-0.log", *(f"toy-0.log.{n + 1}" for n in range(3))]
    assert last_words(log) == [*(f"number {n} is long" for n in (2, 3, 4, 5))]
    assert log.path.with_name("toy-0.log.1").read_text() == "number 4 is long\n"


def test_the_tail_is_the_last_lines_cut_to_a_screens_width(log: SlotLog) -> None:
    assert last_words(log) == []
    append(log, "".join(f"line {n}\n" for n in range(1000)) + "x" * 500)
    assert last_words(log, 2) == ["line 999", "x" * 200]


@pytest.mark.parametrize(
    ("pool", "processes", "queues", "said"),
    [
        ("solo", 6, {"control", "crawlers.links"}, "--pool solo"),
        ("solo", 6, {"crawlers.links"}, "--pool solo"),
        ("solo", 6, {"crawlers"}, "--pool solo"),
        ("prefork", 1, {"control", "crawlers.links"}, "--concurrency 1"),
        ("prefork", 1, {"crawlers.links"}, None),
        ("prefork", 2, {"control", "crawlers.links"}, None),
        ("solo", 1, {"control", "once"}, None),
    ],
)
def test_a_worker_that_one_crawler_would_take_whole_is_refused(
    pool: str, processes: int, queues: set[str], said: str | None
) -> None:
    with pytest.raises(ConfigError, match=said) if said else nullcontext():
        check_pool(pool, processes, queues)
