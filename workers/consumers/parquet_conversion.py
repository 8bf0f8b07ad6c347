"""A file of JSON Lines as a Parquet file, in two passes and never whole in memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from .files import sync_folder

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
