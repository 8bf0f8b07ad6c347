"""pytest-xdist's workers, forked from its controller, which has imported the tests: each would do it for 5 s of CPU.

`fork_workers` is called before a thread starts. A worker still collects, with its own configuration. Where one dies, xdist
starts the next cold; with COLD_STARTS=1 all of them start so: `make test-all` does that.
"""

from __future__ import annotations

import gc
import importlib
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from execnet import gateway_io
from xdist import workermanage

from .warm_process import end

ROOT = Path(__file__).resolve().parents[2]


class _Worker:
    """What execnet uses of a `subprocess.Popen`: a process that waits at its stdin for what it shall be."""

    def __init__(self) -> None:
        theirs, ours = os.pipe(), os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if not self.pid:
            os.close(theirs[1])
            os.close(ours[0])
            _serve(theirs[0], ours[1])
        os.close(theirs[0])
        os.close(ours[1])
        self.stdin, self.stdout = os.fdopen(theirs[1], "wb"), os.fdopen(ours[0], "rb")

    def wait(self) -> int:
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)


_ready: list[_Worker] = []


class _Connection(gateway_io.Popen2IOMaster):
    """Takes a forked process where one is left."""

    def __init__(self, args: Sequence[str], execmodel: Any) -> None:
        if not _ready:
            super().__init__(args, execmodel)
            return
        self.popen = worker = _ready.pop(0)
        gateway_io.Popen2IO.__init__(self, worker.stdin, worker.stdout, execmodel=execmodel)


def fork_workers(paths: Sequence[str], number: int) -> None:
    """From now on the controller's next `number` workers are such, which have imported the tests in `paths`."""
    _import_tests(paths)
    _collect_constants()
    gc.collect()
    gc.freeze()
    if (threads := len(os.listdir("/proc/self/task"))) != 1:  # noqa: PTH208 - names alone
        raise pytest.UsageError(f"{threads} threads after importing the tests: a fork would lose all but one")
    for _ in range(number):
        _ready.append(_Worker())  # noqa: PERF401 - each closes the pipes of those before
    gateway_io.Popen2IOMaster = _Connection
    workermanage._sys_path[:] = sys.path  # which each worker makes its own: a test may have added to it


def send_less(config: pytest.Config) -> None:
    """Have an xdist worker send one report of a test that passes, without fields that nothing reads: with all of its reports
    10,000 tests cost 3 s of CPU more. With `--durations` all are sent.
    """
    (interactor,) = (one for one in config.pluginmanager.get_plugins() if type(one).__name__ == "WorkerInteractor")
    send = interactor.sendevent

    def send_needed(name: str, **what: Any) -> None:
        if name == "testreport" and (report := what["data"])["outcome"] == "passed":
            if report["when"] != "call":
                return
            report |= {"keywords": {}, "sections": []}
        if name != "logstart":
            send(name, **what)

    if config.option.durations is None:
        interactor.sendevent = send_needed


def _import_tests(paths: Sequence[str]) -> None:
    """With pytest's assertions. What cannot be imported is told by each worker, which tries again."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for path in (Path(one.partition("::")[0]).absolute() for one in paths):
            for file in sorted([*path.rglob("test_*.py"), *path.rglob("conftest.py")]) if path.is_dir() else [path]:
                with suppress(Exception, pytest.skip.Exception):
                    importlib.import_module(".".join(file.relative_to(ROOT).with_suffix("").parts))


def _collect_constants() -> None:
    """Have Hypothesis look for constants in the sources once: each worker would, for 0.3 s of CPU, and 2 s in a new checkout."""
    with suppress(ImportError), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Hypothesis warns of work before the session
        from hypothesis.internal.conjecture.providers import _get_local_constants

        _get_local_constants()


def _serve(stdin: int, stdout: int) -> None:
    """Become what `python -c` would, with these files and no others, and never come back."""
    try:
        for other in _ready:  # a pipe that stayed open here would not end with the controller
            other.stdin.close()
            other.stdout.close()
        _ready.clear()
        os.dup2(stdin, 0)
        os.dup2(stdout, 1)
        os.close(stdin)
        os.close(stdout)
        sys.stdin = sys.__stdin__ = open(0, closefd=False)  # noqa: SIM115 - stays open
        sys.stdout = sys.__stdout__ = open(1, "w", closefd=False)  # noqa: SIM115
        exec(gateway_io.popen_bootstrapline, {"__name__": "__main__"})
        end(0)
    except BaseException:
        os.write(2, traceback.format_exc().encode())
    os._exit(1)
