"""Rows as text: JSON lines and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from datetime import datetime
from functools import lru_cache
from typing import Any, BinaryIO

import msgspec
from sqlalchemy import Boolean, Column, Row

from .times import UtcDateTime

Rows = Iterator[Row[*tuple[Any, ...]]]


def write_jsonl(columns: list[Column[Any]], rows: Rows, out: BinaryIO) -> int:
    """One object a line; returns how many."""
    names = [column.name for column in columns]
    encoder = msgspec.json.Encoder()
    count = 0
    for count, row in enumerate(rows, 1):  # noqa: B007 - the last one is the result
        out.write(encoder.encode(dict(zip(names, row, strict=True))) + b"\n")
    return count


def write_csv(columns: list[Column[Any]], rows: Rows, out: BinaryIO) -> int:
    """A header line and one record a row, lines ending with a newline alone; returns how many."""
    text = io.TextIOWrapper(out, encoding="utf-8", newline="", write_through=True)
    try:
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([column.name for column in columns])
        count = 0
        texts = [place for place, column in enumerate(columns) if isinstance(column.type, UtcDateTime | Boolean)]
        for count, row in enumerate(rows, 1):  # noqa: B007 - the last one is the result
            values = list(row)
            for place in texts:
                values[place] = _text(values[place])
            writer.writerow(values)
        return count
    finally:
        text.detach()  # `out` is the caller's


@lru_cache(maxsize=10_000)  # all rows of a page have one time
def _text(value: datetime | bool | None) -> str | None:
    """As in JSON."""
    if value is None:
        return None
    return value.isoformat().replace("+00:00", "Z") if isinstance(value, datetime) else str(value).lower()
