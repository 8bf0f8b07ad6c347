"""Detection of processes that a run of the demo has left behind."""

from __future__ import annotations

import os
import time

import psutil

from .run_folder import MARK

WAIT_S = 5.0
LOOK_S = 0.05


def left_over(run: str, *, wait_s: float = WAIT_S) -> list[str]:
    """Return the processes of this run that still exist after `wait_s`, for people, and kill them."""
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
    """Find processes by the mark in their environment, which is inherited, so that detached ones are found, too."""
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
