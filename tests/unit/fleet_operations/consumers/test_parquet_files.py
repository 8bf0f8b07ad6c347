"""Parquet files of runs: the types of their columns."""

from __future__ import annotations

import io
from typing import Any


def exported(*items: dict[str, Any]) -> list[dict[str, Any]]:
    import pyarrow.parquet as pq  # not before: it starts a thread, which no fork would have

    from fleet_operations.consumers.parquet_files import ParquetExporter

    file = io.BytesIO()
    exporter = ParquetExporter(file)
    exporter.start_exporting()
    for item in items:
        exporter.export_item(item)
    exporter.finish_exporting()
    rows: list[dict[str, Any]] = pq.read_table(io.BytesIO(file.getvalue())).to_pylist()
    return rows


def test_a_column_has_the_type_that_all_its_values_fit_into() -> None:
    first = {"n": 1, "price": 2, "big": 2**60, "huge": 2**70, "mixed": "x", "tags": ["\u00fc"], "yes": True, "none": None}
    absent = dict.fromkeys(first)
    assert exported(first, {"price": 2.5, "mixed": 3, "big": 1}) == [
        {**absent, **first, "price": 2.0, "huge": str(2**70), "tags": '["\u00fc"]'},
        {**absent, "price": 2.5, "mixed": "3", "big": 1},
    ]


def test_no_items_are_an_empty_file() -> None:
    assert exported() == []
