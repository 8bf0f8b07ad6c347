"""Crawlers that a worker of a test starts, by fork from its pool process, which has imported what they import, and what makes the
files of their runs; and the checks of services and lists of spiders that a command asks for, by fork from the command's process.

A worker that `tests.support.warm_start` has forked stands for one whose start was long ago; the crawlers of its fleet start cold,
for a second of CPU each, and a hundred tests have fleets. `fork_crawlers` has `ChildProcess` fork them. As after
`exec`, a crawler has the environment, folder, files, session and signals that were asked for, and no handler of a log or signal
of the worker's. `make test-all` starts each of them cold.
"""

from __future__ import annotations

import atexit
import faulthandler
import fcntl
import gc
import logging
import os
import runpy
import signal
import sys
import traceback
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from subprocess import DEVNULL, PIPE, CompletedProcess, TimeoutExpired  # noqa: F401 - so that this module can stand for `subprocess`
from typing import Any

from redis_components.embedded.die_with_parent import tied
from workers.process.run_module import FOLDER, own_module, put_first

from .warm_process import ABOVE, become, end
from .warm_start import ForkingPopen, fork_children

FORKED = (
    *("workers.crawler", "workers.crawler.warm_parent", "fleet_operations.deploy.check_service"),
    *("fleet_operations.jobs.spider_list", "fleet_operations.consumers.member_files"),
)
CHECKS = ("fleet_operations.deploy.check_service",)

_paths: list[str] = []


def fork_crawlers(paths: list[str]) -> None:
    """From now on, in this process and those that it forks; `paths`: what the interpreter has put on `sys.path`."""
    from fleet_operations.consumers import run_files

    fork_checks(paths)
    vars(run_files)["subprocess"] = sys.modules[__name__]  # it has what they use of it
    fork_children(fork)


def fork_checks(paths: list[str]) -> None:
    """From now on, in this process."""
    from fleet_operations.jobs import spider_list

    _paths[:] = paths
    vars(spider_list)["subprocess"] = sys.modules[__name__]
    fork_children(partial(fork, programs=CHECKS))


def run(command: Sequence[str], *, capture_output: bool, timeout: float, check: bool, **options: Any) -> CompletedProcess[bytes]:
    """`subprocess.run`, as `fleet_operations.jobs.spider_list` uses it."""
    assert capture_output
    assert not check
    with Popen(command, stdout=PIPE, stderr=PIPE, **options) as process:
        try:
            out, err = process.communicate(timeout=timeout)
        except BaseException:
            process.kill()
            raise
    return CompletedProcess(command, process.returncode, out, err)


class Popen(ForkingPopen):
    """`subprocess.Popen`, which forks what a worker starts."""

    programs = FORKED

    def fork(self, asked: Mapping[str, Any], files: Sequence[int]) -> int | None:
        return fork(asked, files, self.programs)


def fork(asked: Mapping[str, Any], files: Sequence[int], programs: Sequence[str] = FORKED) -> int | None:
    """The pid of a new process, a fork of this one; None where the command is none of the programs."""
    command, begin, tie = list(asked["args"]), own_module("workers.crawler")[:-1], tied()
    environment = dict(os.environ if asked["env"] is None else asked["env"])
    parent = os.getpid() if command[: len(tie)] == tie else 0
    command = command[len(tie) :] if parent else command
    what = command[len(begin)] if command[: len(begin)] == begin else ""
    if what not in programs:
        return None
    if pid := os.fork():
        return pid
    try:
        _leave_the_worker(files, asked["pass_fds"])
        _run(what, command, environment, new_session=bool(asked["start_new_session"]), parent=parent)
    except BaseException:
        os.write(2, traceback.format_exc().encode())
    os._exit(1)


def _leave_the_worker(streams: Sequence[int], passed: Sequence[int]) -> None:
    """Give up its files, handlers of signals, and logs. A file's number stays taken, by /dev/null: an object of the worker that
    closes it later would close another's.
    """
    nothing = os.open(os.devnull, os.O_RDWR)
    ours = [fcntl.fcntl(file, fcntl.F_DUPFD, ABOVE) for file in streams]
    for file in {int(name) for name in os.listdir("/proc/self/fd")} - {*ours, *passed, nothing}:  # noqa: PTH208 - names alone
        try:
            os.dup2(nothing, file, inheritable=False)
        except OSError:
            continue  # the folder itself
    for own, file in enumerate(ours):
        os.dup2(file, own)
        os.close(file)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - of a process of the pool it is closed
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115 - in place of the worker's, which write to its log
    sys.stderr = open(2, "w", closefd=False, errors="backslashreplace")  # noqa: SIM115
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) == signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    faulthandler.disable()
    atexit._clear()
    sys.excepthook = sys.__excepthook__
    logging.captureWarnings(capture=False)
    for logger in [logging.root, *(one for one in logging.root.manager.loggerDict.values() if isinstance(one, logging.Logger))]:
        logger.handlers.clear()
        logger.filters.clear()
        logger.propagate, logger.disabled = True, False
        logger.setLevel(logging.WARNING if logger is logging.root else logging.NOTSET)


def _run(what: str, command: list[str], environment: dict[str, str], *, new_session: bool, parent: int) -> None:
    gc.freeze()
    request = {
        "new_session": new_session,
        "parent": parent,
        "environment": environment,
        "command": command,
        "folder": str(Path.cwd()),
        "apart": True,
    }
    become({**request, "apart": True, "how": "-m", "what": what, "warnings": [], "arguments": command[4:]}, _paths)
    put_first(FOLDER, str(Path.cwd()))
    if not hasattr(sys.modules.get(what), "__path__"):  # `runpy` warns of a module that is there
        sys.modules.pop(what, None)
    code = 0
    try:
        runpy.run_module(what, run_name="__main__", alter_sys=True)
    except SystemExit as told:
        code = int(told.code or 0) if isinstance(told.code, int | None) else 1
        if isinstance(told.code, str):
            os.write(2, f"{told.code}\n".encode())
    end(code)
