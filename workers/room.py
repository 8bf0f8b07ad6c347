"""How many crawlers a node may host. The places are file locks: the kernel frees the place of a process that dies."""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class Room:
    """`size` places on the node called `node`; each is a file in `folder`."""

    def __init__(self, folder: Path, node: str, size: int) -> None:
        self._paths = [folder / f"{re.sub(r'[^A-Za-z0-9@._-]', '_', node)}-{n}.lock" for n in range(size)]

    @contextmanager
    def place(self) -> Iterator[bool]:
        """Hold a place while inside; False when there is none left."""
        taken = next((fd for path in self._paths if (fd := _lock(path)) is not None), None)
        try:
            yield taken is not None
        finally:
            if taken is not None:
                os.close(taken)

    def taken(self) -> int:
        """Places that somebody holds now."""
        count = 0
        for path in self._paths:
            fd = _lock(path)
            if fd is None:
                count += 1
            else:
                os.close(fd)
        return count


def _lock(path: Path) -> int | None:
    path.parent.mkdir(parents=True, exist_ok=True)
    fd = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)  # not inherited by programs that we start
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return None
    return fd
