"""Lines, JSON and progress of commands: no character of others acts on a terminal. Without rich, as `cli.views.tables` has it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from redis_components.errors import ConfigError
from redis_components.server.printable import in_json, in_one_line, printable, span

PIPE_WIDTH = 200  # columns; rich would take 80 where there is no terminal, and cut what a pipe is searched for


def echo(*lines: object, stderr: bool = False, end: str = "\n") -> None:
    """Print each as a line. Newlines in them stay; join what must be one line with `complain`."""
    stream = sys.stderr if stderr else sys.stdout
    stream.write("".join(f"{printable(str(line))}{end}" for line in lines))
    stream.flush()


def complain(text: object) -> None:
    """Print `trawl: text` in one line on standard error: warnings and errors, which do not belong to the command's output."""
    sys.stderr.write(f"trawl: {in_one_line(str(text))}\n")
    sys.stderr.flush()


def print_json(value: Any) -> None:
    """Print one line of JSON on standard output: every time in it is ISO 8601 with its zone, as `in_plain_json` has it."""
    sys.stdout.write(in_json(json.dumps(in_plain_json(value), ensure_ascii=False)) + "\n")
    sys.stdout.flush()


def report(as_json: bool, value: Any, *lines: object) -> None:
    """Print the outcome of a command: `value` as JSON, or the lines."""
    if as_json:
        print_json(value)
    else:
        echo(*lines)


def write_private(file: Path, text: str) -> None:
    """Write a new file that its owner alone may read. Raises ConfigError where it exists, or cannot be written."""
    try:
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise ConfigError(f"{file}: {error.strerror}: name a file that does not exist yet, in a folder to write to") from error
    with os.fdopen(handle, "w") as stream:
        stream.write(text)


def confirm(effect: str) -> None:
    """Print the consequence, and return after a yes. Raises ConfigError without a terminal, Abort after a no."""
    import typer

    if not sys.stdin.isatty():
        raise ConfigError(f"{effect}: add --yes")
    typer.confirm(f"{effect}. Go on?", abort=True, err=True)


def in_plain_json(value: Any, name: str = "") -> Any:
    """Return records, times and sets as objects, texts and lists. `name`: of the field that has this value.

    A moment is a `datetime`, or epoch seconds in a field `at` or `..._at`; 0 stands for none.
    """
    if isinstance(value, float) and (name == "at" or name.endswith("_at")):
        return iso(value) if value else None
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    elif names := getattr(value, "__struct_fields__", None):
        value = {name: getattr(value, name) for name in names}
    if isinstance(value, Mapping):
        return {str(key): in_plain_json(one, str(key)) for key, one in value.items()}
    return [in_plain_json(one) for one in value] if isinstance(value, list | tuple | set | frozenset) else value


def iso(at: float) -> str:
    """Return epoch seconds as ISO 8601 in UTC."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def counted(number: int, noun: str) -> str:
    """Return `1 scan`, `2 scans`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def duration(seconds: float) -> str:
    """Return `0.4 s`, `12 s`, `5 min`, `3 h` or `2 d`."""
    return f"{max(seconds, 0):.1f} s" if seconds < 10 else span(seconds)


Report = Callable[..., None]
"""`report(done, total=None, doing="")`: what is done, of how much, and what is being done."""


@contextmanager
def working(what: str, unit: str = "", *, shown: bool = True) -> Iterator[Report]:
    """Show on a terminal that a step is running, and what `report` is given of it; `what` is as in `reading queues`."""
    if not shown or not sys.stderr.isatty():
        yield lambda *_, **__: None
        return
    from rich.text import Text

    from .tables import console

    with console(stderr=True).status(Text(what)) as status:  # an address may have brackets, which is not markup

        def report(done: int, total: int | None = None, doing: str = what) -> None:
            status.update(Text(f"{doing}: {done:,}{f' of {total:,}' if total else ''} {unit}".rstrip()))

        yield report
