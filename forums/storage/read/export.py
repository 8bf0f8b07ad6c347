"""Export of rows as JSON lines or CSV, in constant memory.

Stored text was published by others, so a cell may begin like a formula and a text may hold escape sequences. JSON has an escape
for each character, so its values stay as stored. CSV has none: control characters (`redis_components.server.printable`) are
written as `\\x1b`, and a text that a spreadsheet would evaluate gets a leading `'`.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import datetime
from functools import lru_cache
from typing import Any, BinaryIO

import msgspec
from sqlalchemy import Boolean, Column, ColumnElement, Row, Select, Table, exists, func, or_, select

from forums.storage.database import Database
from forums.storage.engine import UtcDateTime
from forums.storage.schema.tables import DATA, comments, forums, posts, revisions
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


def write_csv(columns: list[Column[Any]], rows: Rows, out: BinaryIO) -> int:
    """Write a header line and one record a row, with texts as `safe_cell` returns them; lines end in a newline alone.

    Return the number of rows.
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
            writer.writerow([safe_cell(one) if isinstance(one, str) else one for one in values])
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


def export(
    database: Database,
    table: str,
    fmt: str,
    out: BinaryIO,
    *,
    site: str | None = None,
    since: datetime | None = None,
) -> int:
    """Write the rows of `table` (a name in `tables.DATA`) to `out`; return their number.

    `fmt` is "jsonl" (one object a line), or "csv" (a header line; null is empty). Columns come in the order of the tables, times
    as `2026-01-02T03:04:05Z`, rows ordered by primary key, all from one snapshot. `site`: rows of one site. `since`, an aware
    datetime: rows changed at that time or later (`happened_since`), including posts and comments that were removed on their site,
    so that a consumer can remove its copies.
    Raises ConfigError for an unknown table or format, or a `since` without time zone; StorageError when the database fails.
    """
    if (write := _FORMATS.get(fmt)) is None:
        raise ConfigError(f"export format {fmt!r} is unknown; use one of {', '.join(_FORMATS)}")
    query = _query(table, site, since)
    with closing(database.stream(query)) as rows:
        return write(list(query.selected_columns), rows, out)


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
        query = query.where(happened_since(table, since))
    return query


def happened_since(table: Table[Any], since: datetime) -> ColumnElement[bool]:
    """Return the condition that a row was fetched or found removed since then; for revisions:
    replaced.
    """
    if table is posts or table is comments:
        return or_(table.c.fetched_at >= since, table.c.deleted_at >= since)
    if table is forums:
        return func.coalesce(table.c.fetched_at, table.c.first_seen_at) >= since
    if table is revisions:
        replaced = [
            (table.c.kind == kind) & exists().where(now.c.site == table.c.site, now.c.id == table.c.id, now.c.changed_at >= since)
            for kind, now in (("post", posts), ("comment", comments))
        ]
        return or_(table.c.last_fetched_at >= since, *replaced)
    version: ColumnElement[datetime] = table.c[table.info["version"]]
    return version >= since


_FORMATS: dict[str, Callable[[list[Any], Rows, BinaryIO], int]] = {
    "jsonl": write_jsonl,
    "csv": write_csv,
}
