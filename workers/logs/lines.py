"""Parses lines of a crawler's log, text or JSON: time, level, text. Pure.

A line with a time and a level begins an entry; following lines without them belong to it (a traceback, a list of Scrapy's).
Output without logging, such as the C library's, has neither; it counts as an error where it looks like one.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import msgspec

from redis_components.server.printable import log_entry

# LOG_FORMAT of the fleet, and Scrapy's own: `2026-01-02 03:04:05 INFO name: text`, `2026-01-02 03:04:05 [name] INFO: text`.
_HEAD = re.compile(
    r"(?P<at>\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d)\S* "
    r"(?:(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL) (?P<name>\S+): |\[(?P<old_name>[^\]]*)\] (?P<old_level>[A-Z]+): )"
)
_ALARM = re.compile(r"Fatal |Traceback \(most recent|Current thread|Thread 0x|trawl: |[\w.]*(Error|Exception)\b")
LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
_NUMBERS = {name: getattr(logging, name) for name in LEVELS}


@dataclass(frozen=True, kw_only=True)
class LogLine:
    """One line. `at` sorts as time does; a line without one has that of the entry that it belongs to."""

    text: str  # as it stands in the file; of JSON its readable form, several lines where it has a traceback
    message: str  # without time and level
    at: str = ""  # `2026-01-02 03:04:05`, local time; "": unknown
    level: int = logging.ERROR  # as in `logging`
    head: bool = False  # it begins an entry
    ids: Mapping[str, Any] = field(default_factory=dict)  # of JSON: its subject (site, url …), and its source


class LineReader:
    """Reads lines in their order. One for each log."""

    def __init__(self) -> None:
        self._at = ""
        self._level = logging.ERROR  # of output before logging is set up

    def new_process(self) -> None:
        """Begin the output of another process."""
        self._level = logging.ERROR

    def read(self, text: str) -> LogLine:
        if text.startswith("{") and (line := _from_json(text)):
            self._at, self._level = line.at, line.level
            return line
        if m := _HEAD.match(text):
            self._at = m["at"].replace("T", " ")
            self._level = _NUMBERS.get(m["level"] or m["old_level"], logging.INFO)
            message = f"{m['name'] or m['old_name']}: {text[m.end() :]}"
            return LogLine(text=text, message=message, at=self._at, level=self._level, head=True)
        if self._level < logging.ERROR and _ALARM.match(text.lstrip(" ")):  # of an entry they are indented
            self._level = logging.ERROR
        return LogLine(text=text, message=text, at=self._at, level=self._level)


class _Record(msgspec.Struct):
    """A line of `workers.logs.json_lines`."""

    time: datetime
    level: str
    logger: str
    message: str
    exception: str = ""


_RECORD_FIELDS = frozenset(_Record.__struct_fields__)


def _from_json(text: str) -> LogLine | None:
    try:
        record, fields = msgspec.json.decode(text, type=_Record), msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None  # JSON printed by other code
    at = record.time.astimezone().strftime("%Y-%m-%d %H:%M:%S")
    message = log_entry(f"{record.logger}: {record.message}" + (f"\n{record.exception}" if record.exception else ""))
    return LogLine(
        text=f"{at} {record.level} {message}",
        message=message,
        at=at,
        level=_NUMBERS.get(record.level, logging.INFO),
        head=True,
        ids={name: value for name, value in fields.items() if name not in _RECORD_FIELDS},
    )
