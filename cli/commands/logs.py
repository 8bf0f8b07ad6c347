"""`trawl logs`: the logs of the crawlers on this machine."""

from __future__ import annotations

import heapq
import logging
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

import typer
from rich.text import Text

from cli.names import parse_since, service_or_slot
from cli.views.options import AsJson, Since
from cli.views.output import print_json
from cli.views.tables import console
from redis_components.embedded import data_dir
from redis_components.errors import TrawlError, check_choice, did_you_mean
from workers.logs.slot_log import LEVELS, LineReader, LogFollower, LogLine, SlotLog, is_routine, last_lines, slot_logs

LOOK_S = 0.2  # between two looks for new lines
LOOK_FOR_SLOTS_S = 2.0  # between two looks for crawlers that were started later
_STYLES = {logging.DEBUG: "dim", logging.WARNING: "yellow", logging.ERROR: "red", logging.CRITICAL: "bold red"}


class NoLogs(TrawlError):
    """This machine has no such log; the message lists its logs."""


def logs(
    target: Annotated[str | None, typer.Argument(metavar="SERVICE|SLOT", help="A slot, or all slots of a service.")] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Follow new lines until Ctrl-C.")] = False,
    lines: Annotated[
        int, typer.Option("--lines", "-n", min=0, max=1_000_000, help="Number of last lines, of all slots together.")
    ] = 50,
    since: Since = None,
    level: Annotated[
        str, typer.Option(metavar="LEVEL", help="Only entries of this level or above: DEBUG, INFO, WARNING, ERROR, CRITICAL.")
    ] = "DEBUG",
    as_json: AsJson = False,
) -> int:
    """Show the logs of the crawlers on this machine, sorted by time (UTC).

    The files are in `data/logs/`, one for each slot: `-f` follows them through rotations and restarts of a slot's crawler. The
    lists that Scrapy logs at each start, and reports that nothing was crawled, are in the files only. A crawler on another node
    logs on that node; a crawler that was started by hand logs where it was started.

    **Examples:**

        trawl logs forum_detail/2 -f
        trawl logs forum_detail --level WARNING --since 1h
        trawl logs -n 200 --json
    """
    spider, number = service_or_slot(target) if target else (None, None)
    wanted = _Wanted(
        spider=spider,
        number=number,
        lines=lines,
        since=parse_since(since).astimezone().strftime("%Y-%m-%d %H:%M:%S") if since else "",
        level=_level(level),
    )
    _check(wanted)
    printer = _Printer(as_json=as_json, named=number is None)
    if not follow:
        printer.print(_last(wanted))
        return 0
    with suppress(KeyboardInterrupt):  # how following ends
        _follow(wanted, printer)
    return 0


@dataclass(frozen=True, kw_only=True)
class _Wanted:
    spider: str | None
    number: int | None
    lines: int
    since: str
    level: int

    def logs(self) -> dict[str, SlotLog]:
        """Return the requested logs on this machine, by slot."""
        return {
            f"{spider}/{number}": log
            for (spider, number), log in slot_logs().items()
            if self.spider in (None, spider) and self.number in (None, number)
        }

    def fits(self, line: LogLine) -> bool:
        return line.level >= self.level and line.at >= self.since and not is_routine(line)


def _level(name: str) -> int:
    check_choice("--level", name.upper(), LEVELS)
    return int(getattr(logging, name.upper()))


def _check(wanted: _Wanted) -> None:
    """Raise NoLogs when no requested log is here."""
    if wanted.logs():
        return
    what = "crawlers" if wanted.spider is None else wanted.spider if wanted.number is None else f"{wanted.spider}/{wanted.number}"
    there_are = ", ".join(f"{spider}/{number}" for spider, number in slot_logs()) or "none"
    near = did_you_mean(wanted.spider, {spider for spider, _ in slot_logs()}) if wanted.spider else ""
    elsewhere = "; a crawler on another node logs there (trawl status names the nodes)"
    raise NoLogs(f"no log of {what} in {data_dir() / 'logs'}; there are: {there_are}{near}{elsewhere}")


def _last(wanted: _Wanted) -> list[tuple[str, LogLine]]:
    """Return the last lines of all logs, in the order of time."""
    return _merged(
        wanted,
        [
            [(slot, line) for line in last_lines(log, wanted.lines, since=wanted.since, fits=wanted.fits)]
            for slot, log in wanted.logs().items()
        ],
    )


def _merged(wanted: _Wanted, parts: list[list[tuple[str, LogLine]]]) -> list[tuple[str, LogLine]]:
    merged = list(heapq.merge(*parts, key=lambda one: one[1].at))
    return merged[max(0, len(merged) - wanted.lines) :]


def _follow(wanted: _Wanted, printer: _Printer) -> None:
    followed: dict[str, tuple[LogFollower, LineReader]] = {}
    parts = []
    for slot, log in wanted.logs().items():
        follower = LogFollower(log)
        followed[slot] = follower, LineReader()
        last = last_lines(log, wanted.lines, since=wanted.since, fits=wanted.fits, end=follower.position())
        parts.append([(slot, line) for line in last])
    printer.print(_merged(wanted, parts))
    look_at = 0.0
    while True:
        if time.monotonic() >= look_at:
            for slot, log in wanted.logs().items():
                if slot not in followed:
                    followed[slot] = LogFollower(log, from_start=True), LineReader()
            look_at = time.monotonic() + LOOK_FOR_SLOTS_S
        fresh = [
            [(slot, line) for line in map(reader.read, follower.read()) if wanted.fits(line)]
            for slot, (follower, reader) in followed.items()
        ]
        printer.print(heapq.merge(*fresh, key=lambda one: one[1].at))
        time.sleep(LOOK_S)


class _Printer:
    """Prints lines; with the name of the slot where there may be several."""

    def __init__(self, *, as_json: bool, named: bool) -> None:
        self._as_json = as_json
        self._named = named
        self._console = console()

    def print(self, lines: Iterable[tuple[str, LogLine]]) -> None:
        for slot, line in lines:
            if self._as_json:
                level = logging.getLevelName(line.level)
                at = datetime.fromisoformat(line.at) if line.at else None  # of this machine's zone
                print_json({"slot": slot, "at": at, "level": level, "text": line.text})
            else:
                name = f"{slot} │ " if self._named else ""
                self._console.print(Text.assemble((name, "cyan"), (line.shown, _STYLES.get(line.level, ""))), soft_wrap=True)
