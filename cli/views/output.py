"""rich's Console for text of others: no markup, no emoji codes, and no character that acts on a terminal."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from rich.style import Style
from rich.text import Text

from redis_components.server.printable import in_json, in_one_line, printable

from .columns import Column, Columns, FittedTable, cell


class SafeConsole(Console):
    """Colours come from styles alone. `render` is the one way of all text to the terminal; rich's own control codes pass it."""

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, highlight=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        """Return a cell of a table, escaped before it is measured, so that columns stay straight. Never markup."""
        return super().render_str(printable(text), **{**options, "markup": False, "emoji": False})

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield segments whose text is printable."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text, style, control) if control else Segment(printable(text), _without_links(style))


def _without_links(style: Style | None) -> Style | None:
    return style.update_link(None) if style and style.link else style


SHORT = 16  # cells: a column of at most that width is not wrapped
LEAST = 24  # cells for a text in its row: with less room it stands below
_FIGURE = re.compile(r"[-+?]?|[-+]?[\d.,]+([ /%]{0,2}[A-Za-z%]+(/[a-z]+)?)?|\d{4}-\d\d-\d\d[T ]?[\d:]*Z?")


class PlainTable:
    """`headings`, then `add_row` for each row; rich prints it."""

    def __init__(self, *headings: str, show_header: bool = True) -> None:
        self._headings, self._rows, self._show_header = headings, list[tuple[Text, ...]](), show_header

    @property
    def row_count(self) -> int:
        return len(self._rows)

    def add_row(self, *cells: str | Text) -> None:
        """Add a row with a cell for each heading; text is taken as it is, without markup."""
        self._rows.append(tuple(cell if isinstance(cell, Text) else Text(cell) for cell in cells))

    def __rich_console__(self, _console: Console, _options: ConsoleOptions) -> RenderResult:
        count = len(self._rows[0]) if self._rows else len(self._headings)
        headings = self._headings or ("",) * count
        columns = [self._column(at, name) for at, name in enumerate(headings)]
        yield FittedTable(columns, self._rows, header=self._show_header)

    def _column(self, at: int, name: str) -> Column:
        cells = [row[at] for row in self._rows]
        is_text = any(not _FIGURE.fullmatch(cell.plain) for cell in cells) and max(cell.cell_len for cell in cells) > SHORT
        if at == 0:
            return Column(name=name, least=2 * LEAST if is_text else 0)
        return Column(name=name, rank=2, least=LEAST, below=True) if is_text else Column(name=name, rank=1)


PIPE_WIDTH = 200  # columns; rich would take 80 where there is no terminal, and cut what a pipe is searched for


def console(*, stderr: bool = False) -> Console:
    """Return a console on standard output, or standard error; 200 columns wide when that is not a terminal."""
    stream = sys.stderr if stderr else sys.stdout
    return SafeConsole(file=stream, width=None if stream.isatty() else PIPE_WIDTH)


def echo(*lines: object, stderr: bool = False, end: str = "\n") -> None:
    """Print each as a line. Newlines in them stay; join what must be one line with `complain`."""
    stream = sys.stderr if stderr else sys.stdout
    stream.write("".join(f"{printable(str(line))}{end}" for line in lines))
    stream.flush()


def echo_indented(head: str, text: str) -> None:
    """Print `head`, then the text. On a terminal that is too narrow the text continues below its first word, not at the margin;
    into a pipe it is one line, which can be searched.
    """
    lines = [in_one_line(text)]
    if sys.stdout.isatty():
        screen = console()
        lines = [line.plain.rstrip() for line in Text(lines[0]).wrap(screen, max(screen.width - len(head), 20))] or [""]
    echo(head + lines[0], *(" " * len(head) + line for line in lines[1:]))


def complain(text: object) -> None:
    """Print `trawl: text` in one line on standard error: warnings and errors, which do not belong to the command's output."""
    sys.stderr.write(f"trawl: {in_one_line(str(text))}\n")
    sys.stderr.flush()


def print_json(value: Any) -> None:
    """Print one line of JSON on standard output: every time in it is ISO 8601 with its zone, as `in_plain_json` has it."""
    sys.stdout.write(in_json(json.dumps(in_plain_json(value), ensure_ascii=False)) + "\n")
    sys.stdout.flush()


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


def show(rows: Sequence[Any], columns: Columns, as_json: bool, *, empty: str = "", whole: Any = None) -> None:
    """Print the rows of a list as a table, or as one line of JSON.

    `columns`: the cell of each heading, or columns with ranks. `empty`: the sentence in place
    of a table without rows. `whole`: the JSON where it holds more than the rows.
    """
    if as_json:
        print_json(rows if whole is None else whole)
    elif rows or not empty:
        console().print(table_of(rows, columns))
    else:
        echo(empty)


def table_of(rows: Iterable[Any], columns: Columns) -> PlainTable | FittedTable:
    """Return the table of the rows."""
    if isinstance(columns, Mapping):
        table = plain_table(*columns)
        for row in rows:
            table.add_row(*(cell(row, of) for of in columns.values()))
        return table
    return FittedTable(columns, rows)


def plain_table(*columns: str, show_header: bool = True) -> PlainTable:
    """Return a table without lines that fits any width."""
    return PlainTable(*columns, show_header=show_header)


def iso(at: float) -> str:
    """Return epoch seconds as ISO 8601 in UTC."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def counted(number: int, noun: str) -> str:
    """Return `1 scan`, `2 scans`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def duration(seconds: float) -> str:
    """Return `0.4 s`, `12 s`, `5 min`, `3 h` or `2 d`."""
    for limit, size, unit in ((120, 1, "s"), (7200, 60, "min"), (172_800, 3600, "h")):
        if seconds < limit:
            return f"{max(seconds, 0) / size:.{1 if size == 1 and seconds < 10 else 0}f} {unit}"
    return f"{seconds / 86_400:.0f} d"
