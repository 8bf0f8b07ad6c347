"""A file that only grows by whole lines, is renamed when it is large or old, and belongs to one process."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

from redis_components.errors import ConfigError

from .consume import Item, Sink, SinkOptions, SinkUnavailable, to_line


def sync_folder(folder: Path) -> None:
    """Have the disk know the names in a folder: `fsync` of a file does not promise that. Raises OSError."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


class JsonLines(Sink):
    """Appends items to `path`, one a line. What a process that was killed left half written is cut off: it is still in Redis.

    `max_bytes` and `max_age_s` (since it was opened; 0: no limit) are when it becomes `<name>-<time>.<ending>`.
    """

    def __init__(self, path: Path, *, max_bytes: int = 0, max_age_s: float = 0.0) -> None:
        self.path = path
        self._max_bytes = max_bytes
        self._max_age_s = max_age_s
        self._fd = -1
        self._opened_at = 0.0
        self._open()

    def write(self, items: Sequence[Item]) -> dict[int, str]:
        """Append them and wait until the disk has them. Raises SinkUnavailable; then none of them is in the file."""
        before = os.fstat(self._fd).st_size
        try:
            left = memoryview(b"".join(to_line(one.value) for one in items))
            while left:
                left = left[os.write(self._fd, left) :]
            os.fsync(self._fd)
        except OSError as error:
            os.ftruncate(self._fd, before)
            raise SinkUnavailable(f"{self.path} cannot be written: {error.strerror}") from error
        self.tick()
        return {}

    def tick(self) -> None:
        """Begin another file where this one is large or old enough."""
        size, age_s = os.fstat(self._fd).st_size, time.monotonic() - self._opened_at
        if size and (0 < self._max_bytes <= size or 0 < self._max_age_s <= age_s):
            self._rotate()

    def _rotate(self) -> None:
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
        names = (self.path.with_name(f"{self.path.stem}-{stamp}.{number:03}{self.path.suffix}") for number in count())
        old = next(name for name in names if not name.exists())
        try:
            self.path.rename(old)
        except OSError as error:
            raise SinkUnavailable(f"{self.path} cannot be renamed: {error.strerror}") from error
        self.close()
        self._open()

    def close(self) -> None:
        """Leave it to others."""
        os.close(self._fd)

    def _open(self) -> None:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        except OSError as error:
            raise ConfigError(f"{self.path} cannot be opened: {error.strerror}: name a file that this user may write") from None
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(self._fd).st_ino != self.path.stat().st_ino:  # its writer renamed it after it was opened here
                raise BlockingIOError
        except OSError:
            os.close(self._fd)
            raise ConfigError(f"{self.path} is written by another process: give each consumer its own file") from None
        sync_folder(self.path.parent)
        self._opened_at = time.monotonic()
        os.ftruncate(self._fd, self.path.read_bytes().rfind(b"\n") + 1)


def opened(place: str, options: SinkOptions) -> JsonLines:
    """Open the file of a target."""
    return JsonLines(Path(place), max_bytes=options.max_bytes, max_age_s=options.max_age_s)
