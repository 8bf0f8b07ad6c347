"""Text formats of an export: JSON lines and CSV.

Stored text was published by others, so a cell may begin like a formula and a text may hold escape sequences. JSON has an escape
for each character, so its values stay as stored. CSV has none: unless raw cells are requested, control characters
(`redis_components.server.printable`) are written as `\\x1b`, and a text that a spreadsheet would evaluate gets a leading `'`.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import lru_cache
from typing import Any, BinaryIO

import msgspec
from sqlalchemy import BigInteger, Boolean, Column, Integer, Row

from forums.storage.schema.times import UtcDateTime
from redis_components.errors import ConfigError
from redis_components.server.printable import printable

Rows = Iterator[Row[*tuple[Any, ...]]]

_FORMULA = re.compile(r"[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")  # OWASP's list: starts of formulas in Excel and LibreOffice
# In UTF-8: DEL, C1, line separators, bidi overrides and isolates, which JSON allows unescaped.
_RAW_BYTES = re.compile(rb"\x7f|\xc2[\x80-\x9f]|\xe2\x80[\xa8-\xae]|\xe2\x81[\xa6-\xa9]")


def write_jsonl(columns: list[Column[Any]], rows: Rows, out: BinaryIO) -> int:
    """Write one object a line; return the number of rows."""
    names = [column.name for column in columns]
    encoder = msgspec.json.Encoder()
    count = 0
    for count, row in enumerate(rows, 1):  # noqa: B007 - the last one is the result
        line = encoder.encode(dict(zip(names, row, strict=True)))
        out.write(_RAW_BYTES.sub(lambda found: b"\\u%04x" % ord(found[0].decode()), line) + b"\n")
    return count


def write_csv(columns: list[Column[Any]], rows: Rows, out: BinaryIO, *, raw_cells: bool = False) -> int:
    """Write a header line and one record a row, with lines ending in a newline alone; return the number of rows.

    `raw_cells`: texts as stored; else see `safe_cell`.
    """
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
            writer.writerow(values if raw_cells else [safe_cell(one) if isinstance(one, str) else one for one in values])
        return count
    finally:
        text.detach()  # `out` belongs to the caller


def safe_cell(text: str) -> str:
    """Escape control characters, and prefix `'` to a text that a spreadsheet would take for a formula."""
    shown = "\r\n".join(map(printable, text.split("\r\n")))  # the end of a line on many sites, harmless as a pair
    return f"'{shown}" if _FORMULA.match(text) else shown


@lru_cache(maxsize=10_000)  # all rows of a page have one time
def _text(value: datetime | bool | None) -> str | None:
    """Format a time or boolean as JSON does."""
    if value is None:
        return None
    return value.isoformat().replace("+00:00", "Z") if isinstance(value, datetime) else str(value).lower()


GROUP_ROWS = 20_000
GROUP_CHARS = 16_000_000  # of text: a group needs a few times as much memory


class _Pipe(io.RawIOBase):
    """Output of the writer that counts bytes, because a pipe has no position."""

    def __init__(self, write: Callable[[bytes], int]) -> None:
        self._write, self._at = write, 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._write(bytes(data))
        self._at += len(data)
        return len(data)

    def tell(self) -> int:
        return self._at


def write_parquet(columns: list[Column[Any]], rows: Rows, out: BinaryIO) -> int:
    """Write rows with times as microseconds in UTC, and texts and whole numbers in their own types; return the number of rows.
    Raises ConfigError when pyarrow is not installed.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise ConfigError("the format parquet needs pyarrow: install it with pip install 'trawl-fleet[parquet]'") from error
    schema = pa.schema([pa.field(column.name, _type(pa, column), nullable=bool(column.nullable)) for column in columns])
    texts = [place for place, column in enumerate(columns) if column.name in ("title", "body", "body_html")]
    count = chars = 0
    group: list[tuple[Any, ...]] = []
    with pq.ParquetWriter(_Pipe(out.write), schema, compression="zstd") as writer:
        for count, row in enumerate(rows, 1):  # noqa: B007 - the last one is the result
            group.append(tuple(row))
            chars += sum(len(row[place] or "") for place in texts)
            if len(group) >= GROUP_ROWS or chars >= GROUP_CHARS:
                _write_group(pa, writer, schema, group)
                group, chars = [], 0
        if group:
            _write_group(pa, writer, schema, group)
    return count


def _write_group(pa: Any, writer: Any, schema: Any, group: list[tuple[Any, ...]]) -> None:
    columns = [pa.array(values, field.type) for values, field in zip(zip(*group, strict=True), schema, strict=True)]
    writer.write_table(pa.table(columns, schema=schema), row_group_size=len(group))


def _type(pa: Any, column: Column[Any]) -> Any:
    kind = column.type
    if isinstance(kind, UtcDateTime):
        return pa.timestamp("us", tz="UTC")
    if isinstance(kind, Boolean):
        return pa.bool_()
    if isinstance(kind, BigInteger | Integer):
        return pa.int64()
    return pa.string()
