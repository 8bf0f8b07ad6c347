"""Ends a pool process whose worker died before the process had asked the kernel for a signal at its parent's death.

Each process of the pool asks the kernel to kill it when the worker's main process dies (PR_SET_PDEATHSIG), once it has begun. A
main process that is killed in between, as at the start of a busy machine, leaves children that nothing ends: each waits for
tasks from a pipe whose other end its siblings hold open.
"""

from __future__ import annotations

import os

_main: set[int] = set()  # of the worker's main process, and of processes that are forked from it


def remember_main_process() -> None:
    """Call it in the main process, before the pool is made."""
    _main.clear()
    _main.add(os.getpid())


def end_as_orphan() -> None:
    """End this process if its parent died before the request to the kernel. Call it in a new pool process, after that request."""
    if _main and os.getppid() not in _main:
        os._exit(0)
