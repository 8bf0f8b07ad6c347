"""Folders and files that only their owner may read, also on a machine with other users."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

FOLDER, FILE = 0o700, 0o600


def private_folder(path: Path) -> Path:
    """Make the folder, and those above it that are missing, each readable by its owner only; one that is there stays as it is.

    Raises OSError.
    """
    missing = []
    for folder in (path, *path.parents):
        if folder.exists():
            break
        missing.append(folder)
    for folder in reversed(missing):
        folder.mkdir(mode=FOLDER, exist_ok=True)  # `parents=True` would make those above it readable by all users
    path.mkdir(exist_ok=True)  # raises where a file has the name
    return path


def private_file(path: Path) -> None:
    """Make an empty file that only its owner may read, unless there is one already. Raises OSError."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, FILE))


def acquire(path: Path, *, exclusive: bool, timeout_s: float = 0.0) -> int | None:
    """Lock the file (created 0600 if missing) and return its descriptor, to be closed to let go; None after `timeout_s`."""
    fd = unlocked(path)
    deadline = time.monotonic() + timeout_s
    try:
        while not try_lock(fd, exclusive=exclusive):
            if time.monotonic() >= deadline:
                os.close(fd)
                return None
            time.sleep(0.005)
    except BaseException:
        os.close(fd)
        raise
    return fd


def unlocked(path: Path) -> int:
    """Open the file (created 0600 if missing) and return its descriptor, which holds no lock yet."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def try_lock(fd: int, *, exclusive: bool) -> bool:
    """Lock an open file, unless another process's lock is in the way."""
    try:
        fcntl.flock(fd, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def unlock(fd: int) -> None:
    """Let go, and keep the file open."""
    fcntl.flock(fd, fcntl.LOCK_UN)


@contextlib.contextmanager
def held(path: Path, *, timeout_s: float = 0.0) -> Iterator[int | None]:
    """Hold the exclusive lock for the length of the block; yields None when another has it for longer than `timeout_s`."""
    fd = acquire(path, exclusive=True, timeout_s=timeout_s)
    try:
        yield fd
    finally:
        if fd is not None:
            os.close(fd)


def is_held(path: Path) -> bool:
    """Return True if any process holds the lock, shared or exclusive."""
    with held(path) as fd:
        return fd is None
