"""First message from crawler to supervisor: its grace period and limits. Only the crawler reads the project's settings."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import msgspec

from .shutdown_times import SHUTDOWN_GRACE_S

_MARK = b"terms "


@dataclass(frozen=True, kw_only=True)
class Terms:
    """The defaults count until the crawler has said others."""

    grace_s: float = SHUTDOWN_GRACE_S  # what it gives its pages in flight when it is told to stop
    memory_hard_bytes: int = 0  # resident memory with which it has to be ended; 0: any

    def to_line(self) -> bytes:
        return _MARK + msgspec.json.encode(asdict(self))

    @classmethod
    def from_line(cls, line: bytes) -> Terms | None:
        """None for a line that says something else. Raises ValueError for terms that cannot be read."""
        return msgspec.json.decode(line.removeprefix(_MARK), type=cls) if line.startswith(_MARK) else None
