"""pytest-xdist's workers, forked from its controller, which has collected the tests: each would do it for 8 s of CPU.

`fork_workers` is called before a thread starts. A worker takes the session that was collected for its own, with its own
configuration; where not all of the collection has passed, it collects and tells what is wrong. Where a worker dies, xdist starts
the next cold; with COLD_STARTS=1 all of them start so: `make test-all` does that.
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
from _pytest import fixtures, runner
from _pytest.config import _prepareconfig
from execnet import gateway_io
from xdist import workermanage
from xdist.remote import setup_config

from .warm_process import end

ROOT = Path(__file__).resolve().parents[2]


class _Worker:
    """What execnet uses of a `subprocess.Popen`: a process that waits at its stdin for what it shall be."""

    def __init__(self, collected: pytest.Session | None) -> None:
        theirs, ours = os.pipe(), os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if not self.pid:
            os.close(theirs[1])
            os.close(ours[0])
            if collected:
                _take_over(collected)
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


def fork_workers(config: pytest.Config, number: int) -> None:
    """From now on the controller's next `number` workers are such, which have imported and collected its tests."""
    _import_tests(config.args)
    _collect_constants()
    collected = None if config.option.dist == "loadgroup" else _collect(config, number)
    gc.collect()
    gc.freeze()
    if (threads := len(os.listdir("/proc/self/task"))) != 1:  # noqa: PTH208 - names alone
        raise pytest.UsageError(f"{threads} threads after importing the tests: a fork would lose all but one")
    for _ in range(number):
        _ready.append(_Worker(collected))  # noqa: PERF401 - each closes the pipes of those before
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


def _collect(config: pytest.Config, workers: int) -> pytest.Session | None:
    """The session of a configuration like a worker's, which has collected; None where something did not pass."""
    bad: list[pytest.CollectReport] = []

    class Reports:
        def pytest_collectreport(self, report: pytest.CollectReport) -> None:
            if not report.passed:
                bad.append(report)

    likewise = _prepareconfig([*config.invocation_params.args, "--capture=no"], None)
    setup_config(likewise, None)
    likewise.pluginmanager.register(Reports())
    try:
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("PYTEST_XDIST_WORKER_COUNT", str(workers))
            session = pytest.Session.from_config(likewise)
            likewise._do_configure()
            likewise.pluginmanager.unregister(name="terminalreporter")
            runner.pytest_sessionstart(session)
            fixtures.pytest_sessionstart(session)
            session.perform_collect()
            return None if bad else session
    except pytest.UsageError:
        raise  # from a worker it would be xdist's internal error
    except Exception:
        return None  # the workers tell it
    finally:
        likewise._ensure_unconfigure()


def _take_over(session: pytest.Session) -> None:
    """Have this process's configuration get this session, and its collection what was collected."""
    found = session._fixturemanager
    nodes = {node for item in session.items for node in item.iter_parents()} | {session}

    def of_config(config: pytest.Config) -> pytest.Session:
        config.pluginmanager.register(session, name="session")
        for node in nodes:
            node.config = config
        return session

    def as_collected() -> list[pytest.Item]:
        config = session.config
        session._fixturemanager, found.config = found, config
        for folder in sorted(node.path for node in nodes if isinstance(node, pytest.Directory)):
            config.pluginmanager._loadconftestmodules(
                folder,
                config.getoption("importmode"),
                config.rootpath,
                consider_namespace_packages=config.getini("consider_namespace_packages"),
            )
        session.testscollected = len(session.items)
        config.hook.pytest_collection_finish(session=session)
        return session.items

    session.perform_collect = as_collected  # type: ignore[assignment,method-assign]
    pytest.Session.from_config = of_config  # type: ignore[method-assign]


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
