"""A table that is given its rows one by one and finds out itself what its columns are: figures, short words or texts.

It fits any width, as every view does: a long text that has no room stands below its row, and of the others the last columns
leave. The first column, a name, always stays.
"""

from __future__ import annotations

import re

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from .columns import Column, FittedTable

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
        """A cell for each heading; text is taken as it is, without markup."""
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
