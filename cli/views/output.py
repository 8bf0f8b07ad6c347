"""The one place where commands print: JSON for programs, tables and lines for people, and how both write times.

What is printed may come from a page, from Redis or from another process, so nothing in it is markup and nothing in it acts on a
terminal (`redis_components.server.printable`). A test keeps `print` out of the other modules.
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from redis_components.server.printable import in_json, in_one_line, printable

if TYPE_CHECKING:
    from rich.console import Console

    from .plain_table import PlainTable

PIPE_WIDTH = 200  # columns; rich would take 80 where there is no terminal, and cut what somebody wants to grep


def console(*, stderr: bool = False) -> Console:
    """A console on standard output, or standard error; 200 columns wide when that is not a terminal."""
    from .safe_console import SafeConsole

    stream = sys.stderr if stderr else sys.stdout
    return SafeConsole(file=stream, width=None if stream.isatty() else PIPE_WIDTH)


def say(*lines: object, stderr: bool = False, end: str = "\n") -> None:
    """Print each as a line. Newlines in them stay; join what must be one line with `complain`."""
    stream = sys.stderr if stderr else sys.stdout
    stream.write("".join(f"{printable(str(line))}{end}" for line in lines))
    stream.flush()


def say_indented(head: str, text: str) -> None:
    """`head`, then the text. On a terminal that is too narrow the text continues below its first word, not at the margin; into
    a pipe it is one line, which can be searched.
    """
    lines = [in_one_line(text)]
    if sys.stdout.isatty():
        from rich.text import Text

        screen = console()
        lines = [line.plain.rstrip() for line in Text(lines[0]).wrap(screen, max(screen.width - len(head), 20))] or [""]
    say(head + lines[0], *(" " * len(head) + line for line in lines[1:]))


def complain(text: object) -> None:
    """Print `trawl: text` in one line on standard error: warnings and errors, which do not belong to the command's output."""
    sys.stderr.write(f"trawl: {in_one_line(str(text))}\n")
    sys.stderr.flush()


def print_json(value: Any) -> None:
    """One line of JSON on standard output."""
    sys.stdout.write(in_json(json.dumps(value, ensure_ascii=False)) + "\n")
    sys.stdout.flush()


def plain_table(*columns: str, show_header: bool = True) -> PlainTable:
    """A table without lines that fits any width, in the form that all commands have in common."""
    from .plain_table import PlainTable

    return PlainTable(*columns, show_header=show_header)


def iso(at: float) -> str:
    """Epoch seconds as ISO 8601 in UTC."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def counted(number: int, noun: str) -> str:
    """`1 scan`, `2 scans`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def duration(seconds: float) -> str:
    """`0.4 s`, `12 s`, `5 min`, `3 h`, `2 d`: as much as an eye needs."""
    for limit, size, unit in ((120, 1, "s"), (7200, 60, "min"), (172_800, 3600, "h")):
        if seconds < limit:
            return f"{max(seconds, 0) / size:.{1 if size == 1 and seconds < 10 else 0}f} {unit}"
    return f"{seconds / 86_400:.0f} d"
