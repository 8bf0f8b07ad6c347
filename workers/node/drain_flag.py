"""The flag of a node's shutdown: one byte that a worker's main process shares with its pool by fork."""

from __future__ import annotations

import mmap


class DrainFlag:
    """Set by the main process, seen at once by every process forked from it since; make it before the fork."""

    def __init__(self) -> None:
        self._byte = mmap.mmap(-1, 1)

    def set(self) -> None:
        self._byte[0] = 1

    def clear(self) -> None:
        self._byte[0] = 0

    def is_set(self) -> bool:
        return self._byte[0] == 1
