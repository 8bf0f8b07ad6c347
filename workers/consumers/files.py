"""Items as JSON Lines or as rows of CSV, in files that are rotated."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .rotated_file import RotatedFile
from .sink import Item, as_cell, as_row, to_line


class JsonLines:
    """One item a line."""

    def __init__(self, path: Path, *, max_bytes: int = 0, max_age_s: float = 0.0) -> None:
        self._file = RotatedFile(path, whole_lines, max_bytes=max_bytes, max_age_s=max_age_s)

    def write(self, items: Sequence[Item]) -> dict[int, str]:
        """Append them."""
        self._file.append(b"".join(to_line(one.value) for one in items))
        self._file.rotate_if_due()
        return {}

    def tick(self) -> None:
        """Rotate a file that became old."""
        self._file.rotate_if_due()

    def close(self) -> None:
        """Leave the file to others."""
        self._file.close()


class CsvRows:
    """One item a row, with a header. An item with a new field begins another file, whose header has it, too."""

    def __init__(self, path: Path, *, max_bytes: int = 0, max_age_s: float = 0.0) -> None:
        self._file = RotatedFile(path, whole_rows, max_bytes=max_bytes, max_age_s=max_age_s)
        with path.open(encoding="utf-8", newline="") as lines:
            self._columns = next(csv.reader(lines), [])

    def write(self, items: Sequence[Item]) -> dict[int, str]:
        """Append them."""
        refused, rows = dict[int, str](), list[dict[str, Any]]()
        for one in items:
            try:
                rows.append(as_row(one))
            except ValueError as error:
                refused[one.place] = str(error)
        new = list(dict.fromkeys(name for row in rows for name in row if name not in self._columns))
        if new:
            self._columns = [*self._columns, *new]
            if self._file.size:
                self._file.rotate()
        if rows:
            self._file.append(self._text(rows).encode("utf-8", "surrogatepass"))
            self._file.rotate_if_due()
        return refused

    def tick(self) -> None:
        """Rotate a file that became old."""
        self._file.rotate_if_due()

    def close(self) -> None:
        """Leave the file to others."""
        self._file.close()

    def _text(self, rows: Sequence[dict[str, Any]]) -> str:
        out = io.StringIO(newline="")
        writer = csv.DictWriter(out, self._columns, lineterminator="\n")
        if not self._file.size:
            writer.writeheader()
        writer.writerows({name: as_cell(value) for name, value in row.items()} for row in rows)
        return out.getvalue()


def whole_lines(content: bytes) -> int:
    """Return the number of bytes up to the end of the last whole line."""
    return content.rfind(b"\n") + 1


def whole_rows(content: bytes) -> int:
    """Return the number of bytes up to the end of the last whole row: a newline within quotes ends none."""
    end = whole = 0
    quotes = 0
    while newline := content.find(b"\n", end) + 1:
        quotes += content.count(b'"', end, newline)
        end = newline
        if quotes % 2 == 0:
            whole = end
    return whole
