"""`cli.processes` on real processes: what is started is watched, restarted, and gone at the end, however the end
comes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from cli import processes as services_module
from cli.processes import Service, ServiceFailed, Services
from tests.support.processes import stays, wait_until

pytestmark = pytest.mark.usefixtures("no_process_left")

SLEEP = "import time; print('ready'); time.sleep(60)"
STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready'); time.sleep(60)"
PARENT = f"""
import subprocess, sys, time
print(subprocess.Popen([sys.executable, "-c", {SLEEP!r}], stdout=subprocess.DEVNULL).pid)
time.sleep(60)
"""


class Log:
    """The lines that services printed, in order."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str]] = []

    def __call__(self, name: str, line: str) -> None:
        self.lines.append((name, line))

    def of(self, name: str) -> list[str]:
        return [line for who, line in self.lines if who == name]


def python(name: str, script: str, **options: object) -> Service:
    return Service(name=name, command=(sys.executable, "-u", "-c", script), **options)  # type: ignore[arg-type]


@contextmanager
def running(*services: Service) -> Iterator[tuple[Services, Log]]:
    log = Log()
    group = Services(services, log)
    try:
        group.start()
        yield group, log
    finally:
        group.stop(hurry=lambda: True)


def tend_until(group: Services, log: Log, name: str, count: int) -> None:
    def seen() -> bool:
        group.tend()
        return len(log.of(name)) >= count

    wait_until(seen, lambda: f"{count} lines of {name}: {log.lines}")


def tend_for(group: Services, *, seconds: float) -> None:
    stays(lambda: group.tend() or True, "it is tended", seconds)


def test_each_line_comes_with_the_name_of_its_service() -> None:
    with running(python("one", SLEEP), python("two", "import sys, time; sys.exit(time.sleep(0.1) or print('bye'))")) as (
        group,
        log,
    ):
        tend_until(group, log, "one", 1)
        tend_until(group, log, "two", 1)
        assert log.of("one") == ["ready"]
        assert log.of("two")[0] == "bye"


def test_a_service_that_was_killed_is_started_again_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services_module, "RESTART_WAIT_S", 0.05)
    with running(python("one", SLEEP), python("two", SLEEP)) as (group, log):
        tend_until(group, log, "one", 1)
        before = group.pids()
        os.kill(before["one"], signal.SIGKILL)
        tend_until(group, log, "one", 2)
        after = group.pids()
        assert after["one"] != before["one"]
        assert after["two"] == before["two"]
        assert log.of("trawl") == ["one ended (SIGKILL); starting it again"]


HANGS = """
import os, sys, time
from workers.node import health
health.LIMIT_S = 0.1
health.StatusFile("worker").write(health.Condition.{condition}, "words")
print("ready")
time.sleep(60)
"""


@pytest.mark.parametrize(("condition", "why"), [("OK", "nothing was heard of it for 0 s; before: words"), ("HUNG", "words")])
def test_a_service_that_hangs_is_ended_and_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, condition: str, why: str
) -> None:
    monkeypatch.setenv("TRAWL_HEALTH_DIR", str(tmp_path))
    monkeypatch.setattr(services_module, "RESTART_WAIT_S", 0.02)
    monkeypatch.setattr(services_module, "LOOK_S", 0.06)
    with running(python("one", HANGS.format(condition=condition), role="worker"), python("two", SLEEP, role="beat")) as (
        group,
        log,
    ):
        before = group.pids()
        tend_until(group, log, "one", 2)
        assert log.of("trawl")[:2] == [f"one hangs ({why}); it is ended", "one ended (SIGKILL); starting it again"]
        assert group.pids()["two"] == before["two"], "it has no status file"


def test_a_service_that_dies_again_and_again_ends_it_with_its_last_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services_module, "RESTART_WAIT_S", 0.02)
    with running(python("broken", "raise SystemExit('no such database')")) as (group, log):
        with pytest.raises(ServiceFailed, match=r"broken ended 4 times within 60 s \(exit code 1\): no such database"):
            tend_for(group, seconds=60)
        assert log.of("trawl") == ["broken ended (exit code 1); starting it again"] * 3


def test_a_program_that_is_not_there_is_said_with_its_path() -> None:
    with (
        pytest.raises(ServiceFailed, match="ghost cannot be started: /no/such/program is not an executable program"),
        running(Service(name="ghost", command=("/no/such/program",))),
    ):
        pass


def test_stopping_tells_the_last_started_first_and_reports_each_end() -> None:
    graceful = "import signal, sys, time; signal.signal(signal.SIGTERM, lambda *_: sys.exit(0)); print('ready'); time.sleep(60)"
    with running(python("one", graceful), python("two", graceful)) as (group, log):
        tend_until(group, log, "one", 1)
        tend_until(group, log, "two", 1)
        group.stop()
        assert log.of("trawl") == ["two stopped (exit code 0)", "one stopped (exit code 0)"]
        assert not group.pids()


def test_one_that_does_not_hear_is_killed_after_its_time_and_with_it_what_it_started() -> None:
    with running(python("deaf", STUBBORN, stop_s=0.3), python("parent", PARENT)) as (group, log):
        tend_until(group, log, "deaf", 1)
        tend_until(group, log, "parent", 1)
        grandchild = psutil.Process(int(log.of("parent")[0]))
        looks: list[bool] = []
        group.stop(hurry=lambda: bool(looks.append(True)))
        assert looks, "it was waited for"
        assert "deaf stopped (SIGKILL)" in log.of("trawl")
        wait_until(lambda: not grandchild.is_running(), "what a service started ends with it")


def test_who_is_impatient_need_not_wait() -> None:
    with running(python("deaf", STUBBORN, stop_s=3600)) as (group, log):  # longer than a test may last
        tend_until(group, log, "deaf", 1)
        group.stop(hurry=lambda: True)
        assert not group.pids()


def test_services_end_with_the_process_that_started_them_even_when_that_is_killed(tmp_path: Path) -> None:
    script = (
        "import sys, time; from cli.processes import Service, Services\n"
        "said = lambda name, line: print(line, flush=True)\n"
        "group = Services([Service(name='a', command=(sys.executable, '-u', '-c',"
        " 'import os, time; print(os.getpid()); time.sleep(60)'))], said)\n"
        "group.start(); time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, cwd=Path.cwd()) as starter:
        assert starter.stdout
        service = psutil.Process(int(starter.stdout.readline()))
        starter.kill()
        wait_until(lambda: not service.is_running(), "the service ends with its starter")
