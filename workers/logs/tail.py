"""Reads the last lines of a slot's log, across its rotated files."""

from __future__ import annotations

from pathlib import Path

from .lines import LineReader, LogLine
from .slot_log import SlotLog, split_lines

FIRST_BYTES = 64 * 1024  # of a file's end; four times as many when that was not enough


def last_lines(log: SlotLog, n: int, *, since: str = "", level: int = 0, end: int | None = None) -> list[LogLine]:
    """At most `n` lines, oldest first, of entries since then (`2026-01-02 03:04:05`, local time) and of that level or above.

    `end`: offset in the youngest file up to which it is read. Raises OSError.
    """
    found: list[LogLine] = []
    for path in log.files():
        lines, older_wanted = _of_file(path, n - len(found), since, level, end)
        found = lines + found
        end = None
        if len(found) >= n or not older_wanted:
            break
    return found[max(0, len(found) - n) :]


def last_words(log: SlotLog, n: int = 20) -> list[str]:
    """Return at most `n` lines, oldest first, and 200 characters of each: the last output of a process before its death."""
    try:
        return [part[:200] for line in last_lines(log, n) for part in line.text.split("\n")][-n:]
    except OSError:
        return []


def _of_file(path: Path, n: int, since: str, level: int, end: int | None) -> tuple[list[LogLine], bool]:
    """Return a file's last wanted lines, and True if older files may have more."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2) if end is None else end
            part = min(size, FIRST_BYTES)
            while True:
                file.seek(size - part)
                lines = _parse(file.read(part), whole=part == size, entries=bool(since or level))
                wanted = [line for line in lines if line.level >= level and line.at >= since]
                reached = bool(since and lines and lines[0].at and lines[0].at < since)
                if part == size or len(wanted) >= n or reached:
                    return wanted, not reached
                part = min(size, part * 4)
    except FileNotFoundError:  # rotated away meanwhile
        return [], False


def _parse(data: bytes, *, whole: bool, entries: bool) -> list[LogLine]:
    """Parse the lines of a file's end; for entries by time or level, from the first one that begins in it."""
    reader = LineReader()
    lines = [reader.read(text) for text in split_lines(data)]
    if whole:
        return lines
    if not entries:
        return lines[1:]  # the first may be a part of one
    first = next((place for place, line in enumerate(lines) if line.head), len(lines))
    return lines[first:]  # earlier lines belong to an entry that begins before this part
