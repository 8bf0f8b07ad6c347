"""The console for text of others, and tables that fit any width: columns leave by rank, and a figure is never cut.

rich's tables shrink all columns alike, down to headings of one letter a line. Here each column has a rank, and texts get the room
that is left. Loading rich takes longer than most commands: `cli.views.output` has what needs none.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from rich.style import Style
from rich.text import Text

from redis_components.server.printable import in_one_line, printable

from .output import PIPE_WIDTH, echo, print_json

GAP = 2  # cells between two columns
INDENT = 2  # of a text below its row
LEAST_BELOW = 20  # cells for a text below its row: it is shown in any case

Cell = str | Callable[[Any], str | Text]
"""The name of a row's field, or a function of the row."""


@dataclass(frozen=True)
class Column:
    """One column. Without `least` it has the width of its widest cell, or is left out."""

    name: str
    of: Cell = ""
    _: KW_ONLY
    rank: int = 0  # 0 stays always; of the others the highest leaves first
    right: bool = False  # for figures
    least: int = 0  # cells: a text may be wrapped to that width
    below: bool = False  # a text: where it has no room, it stands in lines below its row
    cut: bool = False  # a text that is cut and not wrapped: what it ends with matters little


Columns = Mapping[str, Cell] | Sequence[Column]
"""The cells by heading, or columns with ranks."""


class FittedTable:
    """Rows under the columns that have room. A row has a cell for each column, as text or `Text`, or is what `Column.of` reads.

    `most`: rows to show, the first ones; what is left out is counted in a last line.
    """

    def __init__(self, columns: Sequence[Column], rows: Iterable[Any], *, most: int | None = None) -> None:
        self._columns = tuple(columns)
        of = [column.of for column in columns]
        found = [tuple(map(_cell, [cell(row, one) for one in of] if any(of) else row)) for row in rows]
        self._rows = found[:most] if most is not None else found
        self._left_out = len(found) - len(self._rows)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        widths = self.widths(options.max_width)
        yield self._line([Text(column.name, style="bold") for column in self._columns], widths)
        for row in self._rows:
            yield from self._row(console, row, widths, options.max_width)
        if self._left_out:
            yield Text(f"and {self._left_out:,} more", style="dim")

    def widths(self, room: int) -> list[int]:
        """Return the width of each column; 0 for one that is left out."""
        natural = [
            max([cell_len(column.name), *(row[at].cell_len for row in self._rows)], default=0)
            for at, column in enumerate(self._columns)
        ]
        shown = [any(row[at].plain for row in self._rows) or not column.below for at, column in enumerate(self._columns)]

        def least(at: int) -> int:
            column = self._columns[at]
            return min(natural[at], max(column.least, cell_len(column.name))) if column.least else natural[at]

        def needed() -> int:
            present = [at for at, stays in enumerate(shown) if stays]
            return sum(map(least, present)) + GAP * max(0, len(present) - 1)

        while needed() > room:
            leaving = [at for at, stays in enumerate(shown) if stays and self._columns[at].rank]
            if not leaving:
                break
            shown[max(leaving, key=lambda at: (self._columns[at].rank, at))] = False
        widths = [least(at) if stays else 0 for at, stays in enumerate(shown)]
        left = room - needed()
        for at, column in enumerate(self._columns):  # texts grow from the left: the first matters most
            if widths[at] and column.least and left > 0:
                more = min(left, natural[at] - widths[at])
                widths[at], left = widths[at] + more, left - more
        if left < 0:  # not even what always stays has room: the first column, a name, gives way
            widths[0] = max(1, widths[0] + left)
        return widths

    def _row(self, console: Console, row: Sequence[Text], widths: Sequence[int], room: int) -> Iterable[Text]:
        pieces = [
            list(cell.wrap(console, width, overflow="fold")) if width and column.least and not column.cut else [cell]
            for column, cell, width in zip(self._columns, row, widths, strict=True)
        ]
        for at in range(max([1, *(len(lines) for lines, width in zip(pieces, widths, strict=True) if width)])):
            yield self._line([lines[at] if at < len(lines) else Text("") for lines in pieces], widths)
        for column, cell, width in zip(self._columns, row, widths, strict=True):
            if column.below and not width and cell.plain:
                for line in cell.wrap(console, max(LEAST_BELOW, room - INDENT), overflow="fold"):
                    yield Text(" " * INDENT).append_text(line)

    def _line(self, cells: Sequence[Text], widths: Sequence[int]) -> Text:
        text, first = Text(no_wrap=True, overflow="ignore", end="\n"), True
        for column, cell, width in zip(self._columns, cells, widths, strict=True):
            if not width:
                continue
            if not first:
                text.append(" " * GAP)
            one = cell.copy()
            one.rstrip()
            if one.cell_len > width:
                one.truncate(width, overflow="ellipsis")
            pad = " " * (width - one.cell_len)
            text = text.append(pad).append_text(one) if column.right else text.append_text(one).append(pad)
            first = False
        text.rstrip()
        return text


def figure(name: str, of: Cell = "", *, rank: int = 0) -> Column:
    """Return a column of figures."""
    return Column(name, of, right=True, rank=rank)


def cell(row: Any, of: Cell) -> str | Text:
    """Return the cell of a row: a mapping, or an object with attributes."""
    value = of(row) if callable(of) else row[of] if isinstance(row, Mapping) else getattr(row, of)
    match value:
        case str() | Text():
            return value
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case float():
            return f"{value:,.6g}"
    return ", ".join(map(str, value))


def _cell(value: str | Text) -> Text:
    """Return one line whose characters do not act on a terminal, escaped before its width is measured."""
    text = value if isinstance(value, Text) else Text(value)
    safe = in_one_line(text.plain).replace("\t", " ")
    return text if safe == text.plain else Text(safe, style=text.style)


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


SHORT = 16  # characters: a column with more is a text
LEAST = 24  # cells for a text in its row: with less room it stands below


def console(*, stderr: bool = False) -> Console:
    """Return a console on standard output, or standard error; 200 columns wide when that is not a terminal."""
    stream = sys.stderr if stderr else sys.stdout
    return SafeConsole(file=stream, width=None if stream.isatty() else PIPE_WIDTH)


def table_of(rows: Sequence[Any], columns: Columns) -> FittedTable:
    """Return the table of the rows. Of cells by heading those with texts leave first, and stand below their row then."""
    if isinstance(columns, Mapping):
        first, *others = columns.items()
        texts = {name for name, of in others if any(len(cell(row, of)) > SHORT for row in rows)}
        columns = (
            Column(*first, least=2 * LEAST),
            *(Column(name, of, rank=1 + (name in texts), least=LEAST, below=name in texts) for name, of in others),
        )
    return FittedTable(columns, rows)


def show(rows: Sequence[Any], columns: Columns, as_json: bool, *, empty: str = "", whole: Any = None) -> None:
    """Print the rows of a list as a table, or as one line of JSON.

    `empty`: the sentence in place of a table without rows. `whole`: the JSON where it holds more than the rows.
    """
    if as_json:
        print_json(rows if whole is None else whole)
    elif rows or not empty:
        console().print(table_of(rows, columns))
    else:
        echo(empty)


def shortened(text: str, most: int) -> str:
    """Return the text in one line, of at most so many characters."""
    text = " ".join(text.split())
    return text if len(text) <= most else text[: most - 1] + "…"


def echo_indented(head: str, text: str) -> None:
    """Print `head`, then the text. On a terminal that is too narrow the text continues below its first word, not at the margin;
    into a pipe it is one line, which can be searched.
    """
    lines = [in_one_line(text)]
    if sys.stdout.isatty():
        screen = console()
        lines = [line.plain.rstrip() for line in Text(lines[0]).wrap(screen, max(screen.width - len(head), 20))] or [""]
    echo(head + lines[0], *(" " * len(head) + line for line in lines[1:]))
