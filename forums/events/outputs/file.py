"""Output to the end of a file, as lines of JSON. The last line gives the position, so each event is written once.

To rotate the file, rename it: the next events begin a new one.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import msgspec

from forums.storage.read.event_reader import Event
from forums.storage.write.event_log import Position
from redis_components.errors import ConfigError

from .delivery import NotTaken, Taken, encode

_LAST = 4 << 20  # bytes from the end that are searched for the last whole line


class FileOutput:
    """One file; `end` is the position after all existing events."""

    def __init__(self, path: Path, end: Position) -> None:
        self._path = path
        self._end = end

    def deliver(self, events: Sequence[Event], *, single: bool = False) -> Taken:
        """Append the new events, and sync them to the disk."""
        given = events[:1] if single else events
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "r+b") as file:
                last = self._last(file)
                new = [event for event in given if last is None or event.at > last]
                file.write(b"".join(encode(event) + b"\n" for event in new))
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise NotTaken(f"{self._path}: {error.strerror or error}: name a file in a writable folder") from error
        return Taken(number=len(given))

    def _last(self, file: BinaryIO) -> Position | None:
        """Return the position of the last whole line, and truncate the file after it: a part of a line is of a process that
        died.
        """
        size = file.seek(0, os.SEEK_END)
        start = max(0, size - _LAST)
        file.seek(start)
        tail = file.read()
        whole = tail.rfind(b"\n") + 1
        if whole == 0 and start > 0:
            raise self._foreign("its last line has over 4 MiB")
        file.seek(start + whole)
        file.truncate()
        if whole == 0:
            return None
        line = tail[tail.rfind(b"\n", 0, whole - 1) + 1 : whole]
        try:
            last = msgspec.json.decode(line, type=Event).at
        except (msgspec.DecodeError, ConfigError):
            raise self._foreign("its last line is not an event") from None
        if last >= self._end:
            raise self._foreign(f"it ends with event {last}, which this database does not have")
        return last

    def _foreign(self, what: str) -> NotTaken:
        return NotTaken(f"{self._path}: {what}: name another file, or move this one away")
