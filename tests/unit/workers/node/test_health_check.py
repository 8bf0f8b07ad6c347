"""The health check by status files: what it says of processes that are well, silent, broken, gone, and of what is no file."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from redis_components.embedded.files import free_port
from workers.node import health_check
from workers.node.health import LIMIT_S, LINE_BYTES, Condition, StatusFile
from workers.node.health_check import of_files

GONE = "999999999"  # above every pid_max


@pytest.mark.parametrize(
    ("condition", "silent_s", "well"),
    [
        (Condition.OK, 1, True),
        (Condition.WAITS, 1, True),
        (Condition.BROKEN, 1, False),
        (Condition.HUNG, 1, False),
        (Condition.OK, LIMIT_S + 1, False),
        (Condition.WAITS, LIMIT_S + 1, False),
    ],
)
def test_a_process_is_well_that_speaks_and_is_not_broken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, condition: Condition, silent_s: float, well: bool
) -> None:
    monkeypatch.setattr(health_check, "_age_s", lambda _: 1000.0)
    StatusFile("worker", tmp_path).write(condition, "it waits for\nthe broker")
    found, said = of_files(str(tmp_path), "worker", time.time() + silent_s)
    assert found is well
    assert "it waits for the broker" in said
    assert f"process {os.getpid()}" in said


def test_nobody_there_is_not_well_and_says_so(tmp_path: Path) -> None:
    assert of_files(str(tmp_path / "none"), "worker", time.time())[0] is False
    StatusFile("beat", tmp_path).write(Condition.OK, "it leads")
    assert of_files(str(tmp_path), "worker", time.time()) == (
        False,
        f"no worker runs on this host, or it cannot write to {tmp_path}",
    )


def test_without_a_role_each_that_reports_counts_and_a_command_that_reports_nothing_is_well(tmp_path: Path) -> None:
    folder = tmp_path / "health"
    assert health_check.main(f"{folder}/") == 0
    folder.mkdir()
    assert health_check.main(f"{folder}/") == 0
    beat, worker = StatusFile("beat", folder), StatusFile("worker", folder)
    beat.write(Condition.OK, "sends")
    assert health_check.main(f"{folder}/") == 0
    worker.write(Condition.BROKEN, "no crawler starts here")
    assert health_check.main(f"{folder}/") == 1
    assert health_check.main(f"{folder}/beat") == 0


def test_of_several_processes_each_has_to_be_well_and_a_dead_one_does_not_count(tmp_path: Path) -> None:
    own = StatusFile("worker", tmp_path)
    own.write(Condition.OK, "it hosts 2 crawlers")
    name = f"worker@{os.uname().nodename}."
    (tmp_path / f"{name}{GONE}").write_text("1.0 60 broken long ago\n")
    (tmp_path / "worker@elsewhere.1").write_text("1.0 60 broken on another host\n")
    assert of_files(str(tmp_path), "worker", time.time())[0]
    (tmp_path / f"{name}1").write_text(f"{time.time() - 61:.1f} 60 ok silent\n")
    assert of_files(str(tmp_path), "worker", time.time())[0] is False


@pytest.mark.parametrize("content", ["", "x\n", "now 60 ok words\n", "1e999 60 ok\n", "\0\0\0\n", "1 2 3"])
def test_a_file_that_is_none_is_not_well(tmp_path: Path, content: str) -> None:
    (tmp_path / f"worker@{os.uname().nodename}.{os.getpid()}").write_text(content)
    assert of_files(str(tmp_path), "worker", time.time())[0] is False


def test_a_process_that_starts_removes_what_dead_ones_have_left_and_keeps_to_its_line(tmp_path: Path) -> None:
    left = tmp_path / f"worker@{os.uname().nodename}.{GONE}"
    left.write_text("1.0 60 ok words\n")
    own = StatusFile("worker", tmp_path)
    own.begin()
    assert not left.exists()
    own.write(Condition.BROKEN, "long " * 1000)
    own.write(Condition.OK, "short")
    (path,) = tmp_path.iterdir()
    assert path.stat().st_size == LINE_BYTES
    assert of_files(str(tmp_path), "worker", time.time()) == (True, f"process {os.getpid()}: short")
    own.end()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_ends_nobody(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    own = StatusFile("worker", tmp_path / "file" / "health")
    own.begin()
    own.write(Condition.OK, "it works")
    own.end()


@pytest.mark.processes
def test_as_a_program_it_loads_nothing_heavy_and_says_one_line(tmp_path: Path) -> None:
    StatusFile("worker", tmp_path).write(Condition.OK, "it hosts 1 crawlers")
    script = str(Path(health_check.__file__))
    done = subprocess.run([sys.executable, "-I", "-S", script, f"{tmp_path}/worker"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"process {os.getpid()}: it hosts 1 crawlers\n"
    port = free_port()
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-X", "importtime", script, f"http://127.0.0.1:{port}/livez"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert f"http://127.0.0.1:{port}/livez: " in done.stderr
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time")}
    assert loaded & {"re", "pathlib", "socket", "typing", "enum", "subprocess"} == set()


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-I", "-S", "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()
        process.wait(60)


@pytest.mark.processes
@pytest.mark.parametrize("line", ["{silent} 60 ok it works", "{now} 60 hung its loop stands still"])
def test_what_hangs_at_two_looks_is_ended_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, child: subprocess.Popen[bytes], line: str
) -> None:
    monkeypatch.setattr(health_check, "_age_s", lambda _: 1000.0)
    file = StatusFile("worker", tmp_path, pid=child.pid).path
    hung = line.format(silent=f"{time.time() - 61:.1f}", now=f"{time.time():.1f}") + "\n"

    def check(*, then: str) -> int:
        file.write_text(hung)
        monkeypatch.setattr(health_check.time, "sleep", lambda _: file.write_text(then))
        return health_check.main(f"{tmp_path}/worker", end=True)

    StatusFile("worker", tmp_path).write(Condition.BROKEN, "its disk is full")  # this process
    assert check(then=f"{time.time():.1f} 60 ok it was frozen\n") == 1
    assert child.poll() is None
    assert check(then=hung) == 1
    assert child.wait(60) == -signal.SIGKILL


@pytest.mark.processes
def test_a_file_that_is_older_than_the_process_of_its_number_is_not_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, child: subprocess.Popen[bytes]
) -> None:
    monkeypatch.setattr(health_check, "AGAIN_S", 0.0)
    StatusFile("worker", tmp_path, pid=child.pid).path.write_text(f"{time.time() - 3600:.1f} 60 ok before\n")
    assert of_files(str(tmp_path), "worker", time.time())[1].startswith("no worker runs")
    health_check.end_hung(str(tmp_path), "worker")
    assert child.poll() is None


@pytest.mark.parametrize("abstract", [False, True])
def test_each_line_of_a_process_that_does_not_hang_is_a_datagram_for_systemds_watchdog(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, abstract: bool
) -> None:
    name = f"\0trawl-{os.getpid()}" if abstract else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as systemd:
        systemd.bind(name)
        monkeypatch.setenv("NOTIFY_SOCKET", name.replace("\0", "@"))
        file = StatusFile("worker", tmp_path)
        for condition in Condition:
            file.write(condition, "words")
            if condition is not Condition.HUNG:
                assert systemd.recv(100) == b"WATCHDOG=1", condition
        monkeypatch.setenv("WATCHDOG_PID", "1")  # another process of the unit is waited for
        file.write(Condition.OK, "words")
        with pytest.raises(BlockingIOError):
            systemd.recv(100)
