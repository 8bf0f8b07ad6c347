"""Items as Parquet files. Such a file cannot grow, so items are kept in a journal, which becomes one when it is rotated: in two
passes and never whole in memory.

A killed process loses nothing and leaves no half-written Parquet file: an item leaves Redis when the journal's disk has it. A
rotated journal has the name of its Parquet file and is removed when that is whole; the next process converts the remaining ones.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from .consume import Item, Sink, SinkUnavailable, as_row, to_line
from .files import RotatedFile, sync_folder, whole_lines

ROWS = 10_000
"""Rows of a row group, which is in memory at once."""
_INT64 = 2**63
_EXACT_FLOAT = 2**53


def convert(source: Path, target: Path) -> None:
    """Make `target` of `source`, then remove `source`. Killed at any moment, it can be called again. Raises OSError."""
    kinds = columns_of(source)
    schema = pa.schema([pa.field(name, kind) for name, kind in kinds.items()])
    unfinished = target.with_name(f".{target.name}.tmp")
    with unfinished.open("wb") as file:
        with pq.ParquetWriter(file, schema, compression="zstd") as writer:
            left = _rows(source)
            while rows := list(islice(left, ROWS)):
                columns = [pa.array([_cell(row.get(name), kind) for row in rows], kind) for name, kind in kinds.items()]
                writer.write_table(pa.table(columns, schema=schema))
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(target)
    sync_folder(target.parent)
    source.unlink()


def columns_of(source: Path) -> dict[str, Any]:
    """Return the type of each field in the rows: a type that fits all of its values, else text."""
    kinds: dict[str, Any] = {}
    for row in _rows(source):
        for name, value in row.items():
            kinds[name] = _common(kinds.get(name), _kind(value))
    return {name: pa.string() if kind is None else _TYPES[kind] for name, kind in kinds.items()}


_TYPES = {"bool": pa.bool_(), "int": pa.int64(), "wide int": pa.int64(), "float": pa.float64(), "text": pa.string()}


def _kind(value: Any) -> str | None:
    match value:
        case None:
            return None
        case bool():
            return "bool"
        case int() if abs(value) <= _EXACT_FLOAT:
            return "int"
        case int() if -_INT64 <= value < _INT64:
            return "wide int"  # a float would change it
        case float():
            return "float"
        case _:
            return "text"


def _common(one: str | None, other: str | None) -> str | None:
    if one is None or other is None or one == other:
        return other if one is None else one
    return {frozenset({"int", "float"}): "float", frozenset({"int", "wide int"}): "wide int"}.get(frozenset({one, other}), "text")


def _cell(value: Any, kind: Any) -> Any:
    """Convert a value to its column's type: in a column of text all other values become JSON."""
    if value is None or kind != pa.string() or isinstance(value, str):
        return value
    return msgspec.json.encode(value).decode()


def _rows(source: Path) -> Iterator[dict[str, Any]]:
    with source.open("rb") as lines:
        for line in lines:
            yield msgspec.json.decode(line)


MOST_COLUMNS = 1_000
DEFAULT_MAX_AGE_S = 3600.0
"""Without a limit a small stream would not become a Parquet file for days."""
JOURNAL, PARQUET = ".journal", ".parquet"

logger = logging.getLogger(__name__)


class ParquetFiles(Sink):
    """Writes `<name>-<time>.parquet` files; `path` gives their folder and name. Items of `<name>.journal` are in none yet."""

    def __init__(self, path: Path, *, max_bytes: int = 0, max_age_s: float = 0.0) -> None:
        self._file = RotatedFile(
            path.with_suffix(JOURNAL), whole_lines, max_bytes=max_bytes, max_age_s=max_age_s or DEFAULT_MAX_AGE_S, becomes=PARQUET
        )
        self._rotated = re.compile(rf"{re.escape(self._file.path.stem)}-\d{{8}}T\d{{6}}\.\d{{3,}}\{JOURNAL}", re.ASCII)
        self._failed = ""
        self._convert()
        self._columns = set(columns_of(self._file.path))

    def write(self, items: Sequence[Item]) -> dict[int, str]:
        """Append them to the journal."""
        refused, lines = dict[int, str](), list[bytes]()
        for one in items:
            try:
                names = set(as_row(one))
                if len(names) > MOST_COLUMNS:
                    raise ValueError(f"it has {len(names):,} fields; a Parquet file takes {MOST_COLUMNS:,}")
            except ValueError as error:
                refused[one.place] = str(error)
                continue
            if len(self._columns | names) > MOST_COLUMNS:
                self._append(lines)
                self._begin_another()
                lines = []
            self._columns |= names
            lines.append(to_line(one.value))
        self._append(lines)
        self._rotate_if_due()
        return refused

    def tick(self) -> None:
        """Rotate a journal that became old, and convert what could not be converted before."""
        self._rotate_if_due()
        if self._failed:
            self._convert()

    def close(self) -> None:
        """Make the rest a Parquet file, and leave the journal to others."""
        try:
            if self._file.size:
                self._begin_another()
        except SinkUnavailable as error:
            logger.warning("%s; its items stay in the journal for the next consumer", error)
        finally:
            self._file.close()

    def _append(self, lines: list[bytes]) -> None:
        if lines:
            self._file.append(b"".join(lines))

    def _rotate_if_due(self) -> None:
        if self._file.rotate_if_due():
            self._columns = set()
            self._convert()

    def _begin_another(self) -> None:
        if self._file.size:
            self._file.rotate()
        self._columns = set()
        self._convert()

    def _convert(self) -> None:
        """Convert each rotated journal. What the disk refuses waits: its items are safe in the journal."""
        try:
            for journal in sorted(self._file.path.parent.iterdir()):
                if self._rotated.fullmatch(journal.name):
                    convert(journal, journal.with_suffix(PARQUET))
            self._failed = ""
        except OSError as error:
            if str(error) != self._failed:
                logger.warning("%s: no Parquet file can be written: %s; trying again, nothing is lost", self._file.path, error)
            self._failed = str(error)
