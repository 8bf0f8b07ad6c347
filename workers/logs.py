"""The log file of one crawler slot: appended to by each process that fills the slot, rotated when one starts."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from redis_components.embedded import data_dir

ROTATE_BYTES = 10 * 1024 * 1024
KEPT = 3  # older ones: `.1` is the youngest


class SlotLog:
    """`<data>/logs/<spider>-<number>.log`."""

    def __init__(self, path: Path, *, rotate_bytes: int = ROTATE_BYTES) -> None:
        self.path = path
        self._rotate_bytes = rotate_bytes

    @classmethod
    def of(cls, spider: str, number: int, *, folder: Callable[[], Path] = data_dir) -> SlotLog:
        return cls(folder() / "logs" / f"{spider}-{number}.log")

    def open(self) -> int:
        """A descriptor to append to, for a new process; the file is rotated first if it has grown too large."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):
            if self.path.stat().st_size >= self._rotate_bytes:
                self._rotate()
        return os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def tail(self, lines: int = 20) -> list[str]:
        """The last lines, at most 200 characters of each: what the process said before it died."""
        try:
            with self.path.open("rb") as file:
                file.seek(0, 2)
                file.seek(max(0, file.tell() - lines * 400))
                text = file.read().decode(errors="replace")
        except OSError:
            return []
        return [line[:200] for line in text.splitlines()[-lines:]]

    def _rotate(self) -> None:
        for n in range(KEPT, 0, -1):
            older = self.path.with_name(f"{self.path.name}.{n}")
            younger = self.path.with_name(f"{self.path.name}.{n - 1}") if n > 1 else self.path
            with suppress(FileNotFoundError):
                younger.replace(older)
