"""Export of rows as JSON lines, CSV or Parquet, in constant memory."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from datetime import datetime
from functools import partial
from typing import Any, BinaryIO

from sqlalchemy import ColumnElement, Select, Table, exists, func, or_, select

from forums.storage.database import Database
from forums.storage.schema.tables import DATA, comments, forums, gaps, posts, revisions
from redis_components.errors import ConfigError

from .export_formats import Rows, write_csv, write_jsonl, write_parquet

DELETED = ("include", "exclude", "only")


def export(
    database: Database,
    table: str,
    fmt: str,
    out: BinaryIO,
    *,
    site: str | None = None,
    since: datetime | None = None,
    deleted: str = "include",
    raw_cells: bool = False,
    progress: Callable[[int], None] = lambda rows: None,
) -> int:
    """Write the rows of `table` (a name in `tables.DATA`) to `out`; return their number.

    `fmt` is "jsonl" (one object a line), "csv" (a header line; null is empty) or "parquet" (needs the extra `parquet`). Columns
    come in the order of the tables, times as `2026-01-02T03:04:05Z`, rows ordered by primary key, all from one snapshot.
    `site`: rows of one site. `since`, an aware datetime: rows changed at that time or later (`happened_since`). `deleted`:
    whether to include posts and comments that were removed on their site; a consumer that follows a table by `since` needs them,
    to remove its copies. `raw_cells`, for CSV: texts as stored, also texts that a spreadsheet would take for formulas.
    `progress` is called with the number of rows read, once in a thousand.
    Raises ConfigError for an unknown table or format, `deleted` for a table without deletions, a `since` without time zone, or a
    missing library for Parquet; StorageError when the database fails.
    """
    write = _RAW_FORMATS.get(fmt, _FORMATS.get(fmt)) if raw_cells else _FORMATS.get(fmt)
    if write is None:
        raise ConfigError(f"export format {fmt!r} is unknown; use one of {', '.join(_FORMATS)}")
    query = _query(table, site, since, deleted)
    with closing(database.stream(query)) as rows:
        return write(list(query.selected_columns), _counted(rows, progress), out)


def _counted(rows: Rows, progress: Callable[[int], None]) -> Rows:
    for number, row in enumerate(rows, 1):
        yield row
        if number % 1000 == 0:
            progress(number)


def _query(name: str, site: str | None, since: datetime | None, deleted: str) -> Select[*tuple[Any, ...]]:
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
    if deleted not in DELETED:
        raise ConfigError(f"deleted {deleted!r} is unknown; use one of {', '.join(DELETED)}")
    if deleted != "include":
        if "deleted_at" not in table.c:
            raise ConfigError(f"rows of {name} are not deleted: {deleted!r} is for posts and comments")
        removed = table.c.deleted_at
        query = query.where(removed.is_not(None) if deleted == "only" else removed.is_(None))
    return query


def happened_since(table: Table[Any], since: datetime) -> ColumnElement[bool]:
    """Return the condition that a row was fetched or found removed since then; for gaps: opened or closed; revisions:
    replaced.
    """
    if table is posts or table is comments:
        return or_(table.c.fetched_at >= since, table.c.deleted_at >= since)
    if table is forums:
        return func.coalesce(table.c.fetched_at, table.c.first_seen_at) >= since
    if table is gaps:
        return or_(table.c.opened_at >= since, table.c.closed_at >= since)
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
    "parquet": write_parquet,
}
_RAW_FORMATS: dict[str, Callable[[list[Any], Rows, BinaryIO], int]] = {"csv": partial(write_csv, raw_cells=True)}
