"""Rows out of the database as JSON lines or CSV, in constant memory."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import datetime
from typing import Any, TextIO

import msgspec
from sqlalchemy import Row, Select, select

from redis_components.errors import ConfigError

from .database import Database
from .tables import DATA

_Rows = Iterator[Row[*tuple[Any, ...]]]


def export(
    database: Database, table: str, fmt: str, out: TextIO, *, site: str | None = None, since: datetime | None = None
) -> int:
    """Write the rows of `table` ("posts", "comments" or "scans") to `out`; returns how many.

    `fmt` is "jsonl" (one object a line) or "csv" (a header line; null is empty; open files with `newline=""`). Columns come in
    the order of the tables, times as `2026-01-02T03:04:05Z`, rows ordered by primary key, all as of one moment.
    `site` keeps the rows of one site; `since`, an aware datetime, those fetched (scans: finished) at that time or later.
    Raises ConfigError for an unknown table or format, or a `since` without time zone, StorageError when the database fails.
    """
    write = _FORMATS.get(fmt)
    if write is None:
        raise ConfigError(f"export format {fmt!r} is unknown; use one of {', '.join(_FORMATS)}")
    query = _query(table, site, since)
    with closing(database.stream(query)) as rows:
        return write([column.name for column in query.selected_columns], rows, out)


def _query(name: str, site: str | None, since: datetime | None) -> Select[*tuple[Any, ...]]:
    table = DATA.get(name)
    if table is None:
        raise ConfigError(f"table {name!r} is unknown; use one of {', '.join(DATA)}")
    query: Select[*tuple[Any, ...]] = select(table).order_by(*table.primary_key.columns)
    if site is not None:
        query = query.where(table.c.site == site)
    if since is not None:
        if since.tzinfo is None:
            raise ConfigError(f"since {since.isoformat()} has no time zone; write it as {since.isoformat()}Z for UTC")
        query = query.where(table.c[table.info["version"]] >= since)
    return query


def _jsonl(names: list[str], rows: _Rows, out: TextIO) -> int:
    encoder = msgspec.json.Encoder()
    count = 0
    for count, row in enumerate(rows, 1):  # noqa: B007 - the last one is the result
        out.write(encoder.encode(dict(zip(names, row, strict=True))).decode() + "\n")
    return count


def _csv(names: list[str], rows: _Rows, out: TextIO) -> int:
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(names)
    count = 0
    for count, row in enumerate(rows, 1):  # noqa: B007 - the last one is the result
        writer.writerow([_text(value) if isinstance(value, datetime) else value for value in row])
    return count


def _text(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")


_FORMATS: dict[str, Callable[[list[str], _Rows, TextIO], int]] = {"jsonl": _jsonl, "csv": _csv}
