"""The child processes of the fleet: each ends with all that it has started."""

from __future__ import annotations

import signal
import subprocess

import psutil
import pytest

from redis_components.embedded.child_process import ChildProcess
from tests.support.processes import wait_until


def works(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.processes
def test_what_is_left_after_its_time_is_killed_with_all_that_it_has_started() -> None:
    with ChildProcess(["/bin/sh", "-c", "sleep 300 & echo $!; wait"], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        started = int(child.stdout.readline())
        assert works(started)
        assert child.end(0) is None
    assert child.returncode == -signal.SIGKILL
    wait_until(lambda: not works(started), "what it has started has ended", 30)


@pytest.mark.processes
def test_a_program_that_ends_when_it_is_asked_has_its_own_exit_code() -> None:
    command = ["/bin/sh", "-c", "trap 'exit 3' TERM; echo ready; while :; do sleep 0.05; done"]
    with ChildProcess(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        child.stdout.readline()
        child.stop(60)
    assert child.returncode == 3
