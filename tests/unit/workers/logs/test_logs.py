"""A slot's log: rotation that its process notices, readers that follow it, lines with their levels."""

from __future__ import annotations

import logging
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from redis_components.errors import ConfigError
from tests.support.fleet import ROOT
from tests.support.processes import wait_until
from workers.logs.slot_log import LineReader, LogFollower, LogLimits, SlotLog, slot_logs
from workers.logs.worker_log import LogStream, PatientHandler


@pytest.fixture
def log(tmp_path: Path) -> SlotLog:
    return SlotLog(tmp_path / "logs" / "toy-0.log", LogLimits(max_bytes=60, kept=3))


class Writer:
    """Appends lines, and rotates as a crawler does."""

    def __init__(self, log: SlotLog) -> None:
        self.log = log
        self.fd = log.open()
        self.said = 0

    def say(self, lines: int = 1) -> list[str]:
        texts = [f"line {self.said + n:4}" for n in range(lines)]
        os.write(self.fd, "".join(f"{text}\n" for text in texts).encode())
        self.said += lines
        return texts

    def rotate(self) -> None:
        old, self.fd = self.fd, self.log.successor(self.fd)
        os.close(old)


@pytest.fixture
def writer(log: SlotLog) -> Iterator[Writer]:
    writer = Writer(log)
    yield writer
    os.close(writer.fd)


@pytest.fixture
def follow(log: SlotLog) -> Iterator[Callable[..., LogFollower]]:
    """Begin to follow the log."""
    followers: list[LogFollower] = []

    def begin(*, from_start: bool = False) -> LogFollower:
        followers.append(LogFollower(log, from_start=from_start))
        return followers[-1]

    yield begin
    for follower in followers:
        follower.close()


SAYS_EVERYTHING = """
import ctypes, faulthandler, os, sys, subprocess
from pathlib import Path
from workers.logs.slot_log import LogLimits, SlotLog
from workers.logs.slot_log import OwnLog
faulthandler.enable()
own = OwnLog(SlotLog(Path(sys.argv[1]), LogLimits(max_bytes=30, kept=3)))
print("before the rotation " + "x" * 30, flush=True)
assert own.rotate_if_full() and not own.rotate_if_full()
print("printed", flush=True)
os.write(2, b"written to descriptor 2\\n")
subprocess.run(["echo", "said by a child"], check=True)
ctypes.CDLL(None).abort()
"""


@pytest.mark.processes
def test_everything_that_a_process_says_goes_on_in_the_new_file(log: SlotLog) -> None:
    fd = log.open()
    command = [sys.executable, "-c", SAYS_EVERYTHING, str(log.path)]
    assert subprocess.run(command, cwd=ROOT, stdout=fd, stderr=fd, timeout=60, check=False).returncode == -6
    os.close(fd)
    assert log.file(1).read_text().startswith("before the rotation")
    now = log.path.read_text()
    for text in ("printed", "written to descriptor 2", "said by a child", "Fatal Python error: Aborted", 'File "<string>"'):
        assert text in now


def test_two_that_find_the_file_full_rotate_it_once(writer: Writer, log: SlotLog) -> None:
    other = os.open(log.path, os.O_WRONLY | os.O_APPEND)
    writer.say(10)
    writer.rotate()
    successor = log.successor(other)
    assert os.path.samestat(os.fstat(successor), os.fstat(writer.fd))
    assert [path.name for path in log.files()] == ["toy-0.log", "toy-0.log.1"]
    for fd in (other, successor):
        os.close(fd)


def test_a_follower_misses_no_line_through_a_rotation(writer: Writer, follow: Callable[..., LogFollower]) -> None:
    said = writer.say(3)
    follower = follow(from_start=True)
    assert follower.read() == said
    said = writer.say(2)
    writer.rotate()
    said += writer.say(2)
    heard: list[str] = []
    wait_until(lambda: heard.extend(follower.read()) or heard == said, lambda: f"{said} is heard; so far {heard}")
    assert follower.read() == []


def test_a_follower_hears_the_last_word_to_a_file_that_has_its_new_name_already(
    writer: Writer, log: SlotLog, follow: Callable[..., LogFollower]
) -> None:
    follower = follow()
    successor = log.successor(writer.fd)
    assert follower.read() == []  # it has noticed
    last = writer.say()
    os.dup2(successor, writer.fd)
    os.close(successor)
    said = last + writer.say()
    assert follower.read() == said


def test_a_follower_that_was_overtaken_goes_on_with_the_youngest(writer: Writer, follow: Callable[..., LogFollower]) -> None:
    writer.say()
    follower = follow()
    for _ in range(5):
        writer.rotate()
        writer.say()
    heard: list[str] = []
    wait_until(lambda: heard.extend(follower.read()) or heard, lambda: f"so far {heard}")
    assert heard == [f"line {5:4}"]


def test_a_follower_waits_for_a_file_and_for_the_end_of_a_line(log: SlotLog, follow: Callable[..., LogFollower]) -> None:
    follower = follow()
    assert follower.read() == []
    fd = log.open()
    os.write(fd, b"half a ")
    assert follower.read() == []
    os.write(fd, b"line\nand ")
    assert follower.read() == ["half a line"]
    os.close(fd)


def test_the_logs_of_a_machine_are_found_by_their_slots(tmp_path: Path) -> None:
    for spider, number in (("forum_list", 0), ("my-spider", 12)):
        os.close(SlotLog.of(spider, number, folder=lambda: tmp_path).open())
    assert list(slot_logs(lambda: tmp_path)) == [("forum_list", 0), ("my-spider", 12)]


@pytest.mark.parametrize(
    ("name", "value"),
    [("TRAWL_LOG_MAX_MB", "much"), ("TRAWL_LOG_MAX_MB", "0"), ("TRAWL_LOG_FILES", "0"), ("TRAWL_LOG_FILES", "-1")],
)
def test_a_limit_that_cannot_be_is_refused_by_its_name(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError, match=f"{name}='{value}'"):
        LogLimits.from_environment()


def test_lines_have_the_level_of_their_entry_and_alarms_are_errors() -> None:
    reader = LineReader()
    said = [
        ("ImportError: no module", logging.ERROR, ""),
        ("2026-01-02 03:04:05 INFO scrapy.middleware: Enabled:", logging.INFO, "2026-01-02 03:04:05"),
        ("['one',", logging.INFO, "2026-01-02 03:04:05"),
        ("2026-01-02 03:04:06 [toy] WARNING: careful", logging.WARNING, "2026-01-02 03:04:06"),
        ("Traceback (most recent call last):", logging.ERROR, "2026-01-02 03:04:06"),
        ("  File x", logging.ERROR, "2026-01-02 03:04:06"),
        ("2026-01-02T03:04:07 DEBUG x: y", logging.DEBUG, "2026-01-02 03:04:07"),
        ("Fatal Python error: Segmentation fault", logging.ERROR, "2026-01-02 03:04:07"),
    ]
    assert [(line.text, line.level, line.at) for line in map(reader.read, (text for text, *_ in said))] == said
    assert reader.read("2026-01-02 03:04:06 [toy] WARNING: careful").message == "toy: careful"


def test_a_stream_passes_on_what_is_severe_enough_with_slot_and_process(
    log: SlotLog, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("TRAWL_LOG_STREAM", "warning")
    fd = log.open()
    os.write(fd, b"2026-01-02 03:04:05 ERROR x: old\n")
    stream = LogStream(log, "toy/0")
    stream.new_process(4711)
    os.write(fd, b"2026-01-02 03:04:05 INFO x: opened\n2026-01-02 03:04:05 WARNING x: slow\nmore\n")
    stream.close()
    os.close(fd)
    assert [(r.levelno, r.getMessage()) for r in caplog.records] == [
        (logging.WARNING, "[toy/0 4711] x: slow"),
        (logging.WARNING, "[toy/0 4711] more"),
    ]


class Stuck(logging.Handler):
    """A terminal in which somebody has pressed Ctrl-S."""

    def __init__(self) -> None:
        super().__init__()
        self.go_on = threading.Event()
        self.said: queue.Queue[str] = queue.Queue()

    def emit(self, record: logging.LogRecord) -> None:
        assert self.go_on.wait(60)
        self.said.put(record.getMessage())


def test_a_log_that_does_not_take_its_lines_holds_up_nobody() -> None:
    stuck = Stuck()
    logger = logging.getLogger("tests.patient")
    logger.propagate = False
    logger.addHandler(PatientHandler([stuck], most=5))
    for n in range(50):
        logger.warning("line %d", n)  # would wait for ever
    stuck.go_on.set()
    assert stuck.said.get(timeout=60) == "line 0"
    wait_until(lambda: stuck.said.qsize() >= 4, "what had room is said")
    logger.warning("after all")
    heard = [stuck.said.get(timeout=60) for _ in range(stuck.said.qsize() + 2)]
    assert heard[-2] == "after all"
    assert "lines were left out here" in heard[-1]
