"""Ends a process of the pool whose worker died before the kernel could be asked to tell it.

Celery asks the kernel to kill each process of the pool when the worker's main process dies (PR_SET_PDEATHSIG), once the new
process has begun. A main process that is killed in between, as at the start of a busy machine, leaves children that nobody ends:
each waits for tasks from a pipe whose other end its siblings hold open.
"""

from __future__ import annotations

import os

_main: set[int] = set()  # of the worker's main process, and of those that are forked from it


def remember_main_process() -> None:
    """Call it in the main process, before the pool is made."""
    _main.clear()
    _main.add(os.getpid())


def end_as_orphan() -> None:
    """Call it in a new process of the pool, after the kernel was asked: from now on that tells; until now nobody did."""
    if _main and os.getppid() not in _main:
        os._exit(0)
