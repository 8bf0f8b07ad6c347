"""Waiting with a reason, and counting processes: what tests of real processes need."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import psutil
import pytest
import redis

from tests.support.warm_start import keepers

T = TypeVar("T")
LOOKS_COST = 25  # times its CPU time between two looks: waiting leaves the machine to what is waited for
LONGEST_WAIT_S = 1.0  # between two looks
LONGEST_PROGRESS = 4  # times `timeout_s`, for what goes on and does not end


def wait_until(
    predicate: Callable[[], T],
    reason: str | Callable[[], str],
    timeout_s: float = 60.0,
    *,
    every_s: float = 0.02,
    progress: Callable[[], object] | None = None,
) -> T:
    """Call `predicate` until it returns something true, and return that.

    `reason` names what was waited for ("the worker is ready"); as a function it may add more, such as the log so far. After
    `timeout_s` the test fails with the reason and the last value. An exception of `predicate` counts as a value: a server that
    is not up yet may refuse the connection. With `progress`, `timeout_s` counts from the last look at which its value had
    changed, up to `LONGEST_PROGRESS` times as long in all: for work whose amount, or whose rate, is not known in advance.
    """
    began_at = moved_at = time.monotonic()
    reached = progress() if progress else None
    while True:
        began = _used()
        last: T | Exception
        try:
            last = predicate()
        except Exception as exc:  # whatever it is, the failure below shows it
            last = exc
        else:
            if last:
                return last
        now = time.monotonic()
        if progress and (value := progress()) != reached:
            reached, moved_at = value, now
        if now > min(moved_at + timeout_s, began_at + LONGEST_PROGRESS * timeout_s):
            said = reason if isinstance(reason, str) else reason()
            pytest.fail(f"waited {now - began_at:.0f} s in vain: {said}; last value: {last!r}")
        time.sleep(max(every_s, min(LOOKS_COST * (_used() - began), LONGEST_WAIT_S)))


def _used() -> float:
    """Seconds of CPU of this thread, and of the processes that have ended: a look may be a command."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.thread_time() + ended.ru_utime + ended.ru_stime


def stays(predicate: Callable[[], object], reason: str | Callable[[], str], for_s: float, *, every_s: float = 0.02) -> None:
    """Look again and again for `for_s` seconds; the test fails with `reason` at the first look that finds something false.

    That nothing happens can only be seen by waiting: use it for that alone. An exception of `predicate` passes.
    """
    deadline = time.monotonic() + for_s
    while time.monotonic() < deadline:
        if not predicate():
            pytest.fail(f"it did not stay so: {reason if isinstance(reason, str) else reason()}")
        time.sleep(every_s)


@contextmanager
def heard_out(client: redis.Redis, pid: int) -> Iterator[None]:
    """The process, which is killed in the block, has said its last word when the block ends: Redis has read all that it sent, so
    what is deleted then stays deleted. A last message would take a lock again, which then lives for half a minute.
    """
    process = psutil.Process(pid)
    ports, inherited = ({one.laddr.port for one in of.net_connections("tcp")} for of in (process, process.parent() or process))
    ports -= inherited
    assert ports, "it has a connection"
    yield
    wait_until(
        lambda: ports.isdisjoint(int(one["addr"].rpartition(":")[2]) for one in client.client_list()), f"{pid} is heard out"
    )


def family() -> list[psutil.Process]:
    """Every process below this one that is alive, zombies left out, and those that commands are forked from."""
    return [p for p in psutil.Process().children(recursive=True) if _alive(p) and p.pid not in keepers()]


def marked(variable: str, value: str) -> list[psutil.Process]:
    """Every process on the machine with this environment variable: also those that left our family (new session, new parent).

    A process passes its environment on to whatever it starts, so a mark that a test sets is on all its descendants, except
    Redis servers: those overwrite it with their title; `inside` finds them.
    """
    found = []
    for process in psutil.process_iter():
        try:
            if process.pid != os.getpid() and process.environ().get(variable) == value and _alive(process):
                found.append(process)
        except psutil.Error:  # gone meanwhile, or another user's
            continue
    return found


def inside(folder: Path) -> list[psutil.Process]:
    """Every process on the machine, but this one, whose working directory is this folder or below it."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.pid != os.getpid() and Path(process.cwd()).is_relative_to(folder) and _alive(process):
                found.append(process)
        except psutil.Error:
            continue
    return found


def arguments(process: psutil.Process) -> list[str]:
    """The command line of a process; empty when it is gone, or a zombie by now."""
    try:
        return process.cmdline()
    except psutil.Error:
        return []


@contextmanager
def none_left(marker: tuple[str, str] | None = None, *, folder: Path | None = None, timeout_s: float = 60.0) -> Iterator[None]:
    """Fail when processes that were started inside the block outlive it by `timeout_s`; they are killed, so later tests are safe.

    Counts the descendants of this process that were not there before; with `marker=(variable, value)` also those that carry
    this mark in their environment, and with `folder` those that work in it, wherever they hang by now.
    """
    before = set(family())

    def left() -> set[psutil.Process]:
        return {*family(), *(marked(*marker) if marker else ()), *(inside(folder) if folder else ())} - before

    yield
    try:
        wait_until(lambda: not left(), lambda: f"no process is left, but there are {_describe(left())}", timeout_s)
    finally:
        for process in left():
            process.kill()


def _alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _describe(processes: set[psutil.Process]) -> list[str]:
    lines = []
    for process in processes:
        try:
            lines.append(f"{process.pid} {' '.join(process.cmdline())[:160]}")
        except psutil.Error:
            lines.append(f"{process.pid} (gone)")
    return lines
