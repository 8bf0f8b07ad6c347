"""First and last message from crawler to supervisor: its grace period and limits, which only the crawler reads from the project's
settings, and how it ends.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import asdict, dataclass

import msgspec

from .exit_kinds import ExitKind, kind_of_label
from .shutdown_times import SHUTDOWN_GRACE_S

_MARK = b"terms "
_END = b"end "


@dataclass(frozen=True, kw_only=True)
class Terms:
    """Limits of a crawler process; the defaults hold until the crawler has sent its own."""

    grace_s: float = SHUTDOWN_GRACE_S  # for its pages in flight at a shutdown
    memory_hard_bytes: int = 0  # resident memory with which it has to be ended; 0: any

    def to_line(self) -> bytes:
        return _MARK + msgspec.json.encode(asdict(self))

    @classmethod
    def from_line(cls, line: bytes) -> Terms | None:
        """Parse a line; None for a line of another kind. Raises ValueError for terms that cannot be read."""
        return msgspec.json.decode(line.removeprefix(_MARK), type=cls) if line.startswith(_MARK) else None


def announce(fd: int | None, kind: ExitKind) -> None:
    """Report how this process ends, right before it exits; its exit code alone could be the spider's own."""
    if fd is not None:
        with suppress(OSError):  # the reader is gone
            os.write(fd, _END + kind.label.encode() + b"\n")


def announced_in(line: bytes) -> ExitKind | None:
    """Return the end that a line announces; None for a line of another kind."""
    return kind_of_label(line.removeprefix(_END).decode(errors="replace")) if line.startswith(_END) else None
