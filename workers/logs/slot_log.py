"""The log file of one crawler slot, and the lines in it: text with time and level.

Every process that fills the slot appends to the file, and it is rotated when it has grown. A crawler's standard output and error
go to it, so that everything is in it: Python's logging, an uncaught traceback, `faulthandler`, the C library. Nothing stands
between a crawler and its file: a worker that hangs, or dies, neither holds it up nor loses its last lines. Readers of the lines
read the file, also while it is written, through rotations and restarts of the slot's process (`LogFollower`).

A line with a time and a level begins an entry; following lines without them belong to it (a traceback, a list of Scrapy's).
Output without logging, such as the C library's, has neither; it counts as an error where it looks like one.
"""

from __future__ import annotations

import fcntl
import logging
import os
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from redis_components.embedded import data_dir
from redis_components.embedded.files import FILE, private_folder
from redis_components.server.names import below, service_name, slot_number
from workers.environment.variables import Logs

_FILE = re.compile(r"(?P<spider>.+)-(?P<number>\d+)\.log")


@dataclass(frozen=True, kw_only=True)
class LogLimits:
    """Limits of a slot's log: at most `kept + 1` files of about `max_bytes` each."""

    max_bytes: int = 10 * 1024 * 1024
    kept: int = 3
    """Older files: `.1` is the youngest."""

    @classmethod
    def from_environment(cls) -> LogLimits:
        """Read TRAWL_LOG_MAX_MB and TRAWL_LOG_FILES. Raises ConfigError."""
        logs = Logs.read()
        return cls(max_bytes=int(logs.log_max_mb * 1024 * 1024), kept=logs.log_files)


class SlotLog:
    """`<data>/logs/<spider>-<number>.log` and its older, rotated files in the same folder."""

    def __init__(self, path: Path, limits: LogLimits | None = None) -> None:
        self.path = path
        self.limits = limits or LogLimits.from_environment()

    @classmethod
    def of(cls, spider: str, number: int, *, folder: Callable[[], Path] = data_dir) -> SlotLog:
        """Return the log of that slot. Raises ConfigError for an invalid slot: its name is a file's."""
        return cls(below(folder(), "logs", f"{service_name(spider)}-{slot_number(number)}.log"))

    def open(self) -> int:
        """Return a descriptor to append to; the file is rotated first if it has grown too large."""
        private_folder(self.path.parent)
        fd = self._append()
        if os.fstat(fd).st_size < self.limits.max_bytes:
            return fd
        try:
            return self.successor(fd)
        finally:
            os.close(fd)

    def successor(self, fd: int) -> int:
        """Return a descriptor of the next file, when the file behind `fd` is full; the full one gets the name `.1`.

        Two processes that find it full at the same time rotate it once.
        """
        fcntl.flock(fd, fcntl.LOCK_EX)
        try:
            if self.is_current(fd):
                for n in range(self.limits.kept, 0, -1):
                    with suppress(FileNotFoundError):
                        self.file(n - 1).replace(self.file(n))
            return self._append()
        finally:
            fcntl.flock(fd, fcntl.LOCK_UN)

    def is_current(self, fd: int) -> bool:
        """Return True if the file behind `fd` is the current one."""
        try:
            return os.path.samestat(os.fstat(fd), self.path.stat())
        except FileNotFoundError:
            return False

    def file(self, age: int) -> Path:
        """Return the current file (0), or the one that was rotated `age` times."""
        return self.path.with_name(f"{self.path.name}.{age}") if age else self.path

    def files(self) -> list[Path]:
        """Return the existing files, youngest first; also older files that another setting has left."""
        rotated = [path for path in self.path.parent.glob(f"{self.path.name}.*") if path.suffix[1:].isdigit()]
        rotated.sort(key=lambda path: int(path.suffix[1:]))
        return [path for path in (self.path, *rotated) if path.is_file()]

    def _append(self) -> int:
        return os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, FILE)


def slot_logs(folder: Callable[[], Path] = data_dir) -> dict[tuple[str, int], SlotLog]:
    """Return the logs on this machine, by spider and number of the slot."""
    found = {}
    for path in sorted((folder() / "logs").glob("*.log")):
        if m := _FILE.fullmatch(path.name):
            found[m["spider"], int(m["number"])] = SlotLog(path)
    return found


def split_lines(data: bytes) -> list[str]:
    """Split a log into lines. Only a newline ends one: `str.splitlines` also takes a dozen characters that a page may bring."""
    *lines, rest = data.decode(errors="replace").split("\n")
    return [line.rstrip("\r") for line in ([*lines, rest] if rest else lines)]


STDOUT, STDERR = 1, 2

logger = logging.getLogger(__name__)


class OwnLog:
    """Rotates the log that this process writes to."""

    def __init__(self, log: SlotLog) -> None:
        self.log = log
        self._failing = False

    def keep_small(self) -> None:
        """Go on in a new file when this one is full, or where that fails, in the old one."""
        try:
            self.rotate_if_full()
        except OSError as error:  # a disk that is full, a folder that is gone: crawling matters more
            if not self._failing:
                logger.warning("the log cannot be rotated; writing continues in the old file: %s", error)
            self._failing = True
        else:
            self._failing = False

    def rotate_if_full(self) -> bool:
        """Go on in a new file when this one is full; True when that was so. Raises OSError."""
        log = self.log
        if os.fstat(STDERR).st_size < log.limits.max_bytes:
            return False
        successor = log.successor(STDERR)
        try:
            os.dup2(successor, STDOUT)
            os.dup2(successor, STDERR)
        finally:
            os.close(successor)
        return True


# LOG_FORMAT of the fleet, and Scrapy's own: `2026-01-02 03:04:05 INFO name: text`, `2026-01-02 03:04:05 [name] INFO: text`.
_HEAD = re.compile(
    r"(?P<at>\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d)\S* "
    r"(?:(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL) (?P<name>\S+): |\[(?P<old_name>[^\]]*)\] (?P<old_level>[A-Z]+): )"
)
_ROUTINE = re.compile(
    r"scrapy\.(addons|middleware): Enabled |scrapy\.crawler: Overridden settings|scrapy\.statscollectors: Dumping "
    r"|scrapy\.extensions\.logstats: Crawled \d+ pages \(at 0 pages/min\), scraped \d+ items \(at 0 items/min\)"
)
_ALARM = re.compile(r"Fatal |Traceback \(most recent|Current thread|Thread 0x|trawl: |[\w.]*(Error|Exception)\b")
LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
_NUMBERS = {name: getattr(logging, name) for name in LEVELS}


@dataclass(frozen=True, kw_only=True)
class LogLine:
    """One line. `at` sorts as time does; a line without one has that of the entry that it belongs to."""

    text: str  # as it stands in the file
    message: str  # without time and level
    at: str = ""  # `2026-01-02 03:04:05`, local time; "": unknown
    level: int = logging.ERROR  # as in `logging`
    head: bool = False  # it begins an entry
    entry: str = ""  # the message of the line that begins its entry

    @property
    def shown(self) -> str:
        """The text with its time as `2026-01-02 03:04:05Z`: files have the time of this machine's zone."""
        if not self.head:
            return self.text
        at = datetime.fromisoformat(self.at).astimezone(UTC)
        return f"{at:%Y-%m-%d %H:%M:%S}Z {logging.getLevelName(self.level)} {self.message}"


def is_routine(line: LogLine) -> bool:
    """Return True for a line of the lists that Scrapy logs at each start, and of reports that nothing was crawled."""
    return line.level <= logging.INFO and _ROUTINE.match(line.entry) is not None


class LineReader:
    """Reads lines in their order. One for each log."""

    def __init__(self) -> None:
        self._at = ""
        self._level = logging.ERROR  # of output before logging is set up
        self._entry = ""

    def new_process(self) -> None:
        """Begin the output of another process."""
        self._level = logging.ERROR

    def read(self, text: str) -> LogLine:
        if m := _HEAD.match(text):
            self._at = m["at"].replace("T", " ")
            self._level = _NUMBERS.get(m["level"] or m["old_level"], logging.INFO)
            self._entry = message = f"{m['name'] or m['old_name']}: {text[m.end() :]}"
            return LogLine(text=text, message=message, at=self._at, level=self._level, head=True, entry=message)
        if self._level < logging.ERROR and _ALARM.match(text.lstrip(" ")):  # of an entry they are indented
            self._level, self._entry = logging.ERROR, ""
        return LogLine(text=text, message=text, at=self._at, level=self._level, entry=self._entry)


FIRST_BYTES = 64 * 1024  # of a file's end; four times as many when that was not enough


Fits = Callable[[LogLine], bool]


def last_lines(log: SlotLog, n: int, *, since: str = "", fits: Fits | None = None, end: int | None = None) -> list[LogLine]:
    """At most `n` lines, oldest first, of entries since then (`2026-01-02 03:04:05`, local time), which fit.

    `end`: offset in the youngest file up to which it is read. Raises OSError.
    """
    found: list[LogLine] = []
    for path in log.files():
        lines, older_wanted = _of_file(path, n - len(found), since, fits, end)
        found = lines + found
        end = None
        if len(found) >= n or not older_wanted:
            break
    return found[max(0, len(found) - n) :]


def last_words(log: SlotLog, n: int = 20) -> list[str]:
    """Return at most `n` lines, oldest first, and 200 characters of each: the last output of a process before its death."""
    try:
        return [line.text[:200] for line in last_lines(log, n)]
    except OSError:
        return []


def _of_file(path: Path, n: int, since: str, fits: Fits | None, end: int | None) -> tuple[list[LogLine], bool]:
    """Return a file's last wanted lines, and True if older files may have more."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2) if end is None else end
            part = min(size, FIRST_BYTES)
            while True:
                file.seek(size - part)
                lines = _parse(file.read(part), whole=part == size, entries=bool(since or fits))
                wanted = [line for line in lines if line.at >= since and (fits is None or fits(line))]
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


CHUNK = 64 * 1024
MOST_BYTES = 1024 * 1024  # in one call
LONGEST_LINE = 64 * 1024  # characters; a longer one is cut into several


class LogFollower:
    """New lines of a slot's log, again and again: `read` returns at once with what there is. Not for two threads."""

    def __init__(self, log: SlotLog, *, from_start: bool = False) -> None:
        """Follow from the end of the file as it is now, or from its start. It need not exist yet."""
        self._log = log
        self._file: BinaryIO | None = None
        self._rest = b""
        self._leave = False  # the file was rotated away: looked at once more, then left
        if not from_start and (file := self._open()):
            file.seek(0, 2)

    def read(self) -> list[str]:
        """Return the complete lines since the last call, at most about 1 MiB; more at the next one. Raises OSError."""
        data = b""
        while len(data) < MOST_BYTES and (file := self._file or self._open()):
            if chunk := file.read(CHUNK):
                data += chunk
            elif self._leave:
                self._open()
            elif not self._rotated(file):
                break
            else:
                # The writer has renamed it, and may write once more to it before it continues in the new one.
                self._leave = True
                break
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > LONGEST_LINE:
            lines, self._rest = [*lines, self._rest], b""
        return [line.decode(errors="replace").rstrip("\r") for line in lines]

    def position(self) -> int:
        """Return the offset in the youngest file from which on `read` will read."""
        return self._file.tell() if self._file else 0

    def close(self) -> None:
        if self._file:
            self._file.close()
            self._file = None

    def _open(self) -> BinaryIO | None:
        self.close()
        with suppress(FileNotFoundError):
            self._file = self._log.path.open("rb", buffering=0)
            self._leave = False
        return self._file

    def _rotated(self, file: BinaryIO) -> bool:
        """Return True if the file is no longer the current one; an emptied file is read from its start."""
        if not self._log.is_current(file.fileno()):
            return self._log.path.exists()  # else between two names
        if os.fstat(file.fileno()).st_size < file.tell():
            file.seek(0)
        return False
