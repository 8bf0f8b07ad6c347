"""Parquet export, row group by row group. Its library comes with the extra `parquet`."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any, BinaryIO

from sqlalchemy import BigInteger, Boolean, Column, Integer

from redis_components.errors import ConfigError

from .export_formats import Rows
from .times import UtcDateTime

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
