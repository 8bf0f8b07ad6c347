"""A file that only grows by whole records, is renamed when it is large or old, and belongs to one process."""

from __future__ import annotations

import csv
import fcntl
import io
import os
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

from redis_components.errors import ConfigError

from .consume import Item, Sink, SinkUnavailable, as_cell, as_row, to_line


def sync_folder(folder: Path) -> None:
    """Have the disk know the names in a folder: `fsync` of a file does not promise that. Raises OSError."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


class GrowingFile(Sink):
    """A sink that appends records to `path`. What a process that was killed left half written is cut off: it is still in Redis.

    `max_bytes` and `max_age_s` (since it was opened; 0: no limit) are when it becomes `<name>-<time>.<ending>`.
    """

    whole: Callable[[bytes], int]
    """Returns the number of bytes of a file that are whole records."""

    def __init__(self, path: Path, *, max_bytes: int = 0, max_age_s: float = 0.0) -> None:
        self.path = path
        self._max_bytes = max_bytes
        self._max_age_s = max_age_s
        self._fd = -1
        self._opened_at = 0.0
        self._open()

    @property
    def size(self) -> int:
        """Bytes in the present file."""
        return os.fstat(self._fd).st_size

    def append(self, records: bytes) -> None:
        """Write them and wait until the disk has them. Raises SinkUnavailable; then none of them is in the file."""
        before = self.size
        try:
            left = memoryview(records)
            while left:
                left = left[os.write(self._fd, left) :]
            os.fsync(self._fd)
        except OSError as error:
            os.ftruncate(self._fd, before)
            raise SinkUnavailable(f"{self.path} cannot be written: {error.strerror}") from error

    def tick(self) -> None:
        """Begin another file where this one is large or old enough."""
        age_s = time.monotonic() - self._opened_at
        if self.size and (0 < self._max_bytes <= self.size or 0 < self._max_age_s <= age_s):
            self.rotate()

    def rotate(self) -> None:
        """Rename the present file and begin a new one."""
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
        content = self.path.read_bytes()
        whole = self.whole(content)
        if whole < len(content):
            os.ftruncate(self._fd, whole)


def whole_lines(content: bytes) -> int:
    """Return the number of bytes up to the end of the last whole line."""
    return content.rfind(b"\n") + 1


def whole_rows(content: bytes) -> int:
    """Return the number of bytes up to the end of the last whole row: a newline within quotes ends none."""
    end = whole = 0
    quotes = 0
    while newline := content.find(b"\n", end) + 1:
        quotes += content.count(b'"', end, newline)
        end = newline
        if quotes % 2 == 0:
            whole = end
    return whole


class JsonLines(GrowingFile):
    """One item a line."""

    whole = staticmethod(whole_lines)

    def write(self, items: Sequence[Item]) -> dict[int, str]:
        """Append them."""
        self.append(b"".join(to_line(one.value) for one in items))
        self.tick()
        return {}


class CsvRows(GrowingFile):
    """One item a row, with a header. An item with a new field begins another file, whose header has it, too."""

    whole = staticmethod(whole_rows)

    def __init__(self, path: Path, **bounds: Any) -> None:
        super().__init__(path, **bounds)
        with path.open(encoding="utf-8", newline="") as lines:
            self._columns = next(csv.reader(lines), [])

    def write(self, items: Sequence[Item]) -> dict[int, str]:
        """Append them."""
        refused, rows = dict[int, str](), list[dict[str, Any]]()
        for one in items:
            try:
                rows.append(as_row(one))
            except ValueError as error:
                refused[one.place] = str(error)
        new = list(dict.fromkeys(name for row in rows for name in row if name not in self._columns))
        if new:
            self._columns = [*self._columns, *new]
            if self.size:
                self.rotate()
        if rows:
            self.append(self._text(rows).encode("utf-8", "surrogatepass"))
            self.tick()
        return refused

    def _text(self, rows: Sequence[dict[str, Any]]) -> str:
        out = io.StringIO(newline="")
        writer = csv.DictWriter(out, self._columns, lineterminator="\n")
        if not self.size:
            writer.writeheader()
        writer.writerows({name: as_cell(value) for name, value in row.items()} for row in rows)
        return out.getvalue()
