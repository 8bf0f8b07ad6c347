"""Parquet files of runs: Scrapy's exporter for them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from itertools import islice
from typing import IO, Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from scrapy.exporters import BaseItemExporter

ROWS = 10_000
"""Rows of a row group, which is in memory at once."""
_INT64 = 2**63


class ParquetExporter(BaseItemExporter):
    """Writes items as a Parquet file when the last one is there: such a file cannot grow, and each item may widen a column."""

    def __init__(self, file: IO[bytes], **options: Any) -> None:
        super().__init__(dont_fail=True, **options)
        self._file, self._rows = file, tempfile.TemporaryFile()  # noqa: SIM115 - until the end
        self._kinds: dict[str, Any] = {}

    def export_item(self, item: Any) -> None:
        """Keep one item."""
        line = msgspec.json.encode(dict(self.get_serialized_fields(item, include_empty=False)))
        self._rows.write(line + b"\n")
        for name, value in msgspec.json.decode(line).items():
            self._kinds[name] = _common(self._kinds.get(name), _kind(value))

    def finish_exporting(self) -> None:
        """Write the file."""
        schema = pa.schema([pa.field(name, kind or pa.string()) for name, kind in self._kinds.items()])
        with self._rows as kept, pq.ParquetWriter(self._file, schema, compression="zstd") as writer:
            kept.seek(0)
            left: Iterator[dict[str, Any]] = map(msgspec.json.decode, kept)
            while rows := list(islice(left, ROWS)):
                columns = [pa.array([_cell(row.get(one.name), one.type) for row in rows], one.type) for one in schema]
                writer.write_table(pa.table(columns, schema=schema))


def _kind(value: Any) -> Any:
    """Return the type of a value, None for one without."""
    match value:
        case None:
            return None
        case bool():
            return pa.bool_()
        case int() if -_INT64 <= value < _INT64:
            return pa.int64()
        case float():
            return pa.float64()
        case _:
            return pa.string()


def _common(one: Any, other: Any) -> Any:
    """Return the type that fits the values of both; text fits all."""
    if one is None or other is None or one == other:
        return other if one is None else one
    return pa.float64() if {one, other} == {pa.int64(), pa.float64()} else pa.string()


def _cell(value: Any, kind: Any) -> Any:
    """Convert a value to its column's type: in a column of text all other values become JSON."""
    if value is None or kind != pa.string() or isinstance(value, str):
        return value
    return msgspec.json.encode(value).decode()
