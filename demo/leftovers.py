"""Processes that a run of the demo has left behind: there must be none."""

from __future__ import annotations

import os
import time

import psutil

from .run_folder import MARK

WAIT_S = 5.0
LOOK_S = 0.05


def left_over(run: str, *, wait_s: float = WAIT_S) -> list[str]:
    """The processes of this run that are still there after `wait_s`, for people; they are killed."""
    deadline = time.monotonic() + wait_s
    while (left := _marked(run)) and time.monotonic() < deadline:
        time.sleep(LOOK_S)
    lines = [_describe(process) for process in left]
    for process in left:
        try:
            process.kill()
        except psutil.Error:
            continue
    return lines


def _marked(run: str) -> list[psutil.Process]:
    """A process hands its environment on to whatever it starts: the mark finds also those that left our family."""
    found = []
    for process in psutil.process_iter():
        try:
            alive = process.status() != psutil.STATUS_ZOMBIE
            if alive and process.pid != os.getpid() and process.environ().get(MARK) == run:
                found.append(process)
        except psutil.Error:  # gone meanwhile, or another user's
            continue
    return found


def _describe(process: psutil.Process) -> str:
    try:
        return f"{process.pid} {' '.join(process.cmdline())[:120]}"
    except psutil.Error:
        return str(process.pid)
