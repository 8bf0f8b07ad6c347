"""Storing many rows at once, so that doing it twice, or in another order, has the same effect as once.

A row overwrites the stored one with the same key when it is of the same time or newer. `first_seen_at` stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import msgspec
from sqlalchemy import Connection, Insert, Table
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import SQLAlchemyError

from .errors import row_refusal
from .records import Comment, Post, RunRow, Scan, Stored
from .tables import comments, crawler_runs, posts, scans

TABLE_OF: dict[type[Stored], Table[Any]] = {Post: posts, Comment: comments, Scan: scans, RunRow: crawler_runs}


@dataclass(frozen=True, kw_only=True)
class Refused:
    """An item that the database itself did not take."""

    place: int  # index in the batch
    reason: str


@dataclass(frozen=True, kw_only=True)
class _Row:
    place: int
    values: dict[str, Any]


def store(connection: Connection, items: Sequence[Stored]) -> list[Refused]:
    """Upsert `items` in the connection's transaction; returns those that the database refused, in no particular order.

    Raises what SQLAlchemy raises when it is the database that failed.
    """
    refused: list[Refused] = []
    for kind, table in TABLE_OF.items():
        rows = [_Row(place=place, values=_values(item, table)) for place, item in enumerate(items) if type(item) is kind]
        waiting = versions(table, rows)
        # The newest row of each key goes first. Only where it is refused, the next older one of the batch gets its turn.
        while waiting:
            newest = {key: rows.pop() for key, rows in waiting.items()}
            failed = _store(connection, upsert(table, connection.dialect.name), list(newest.values()))
            refused += failed
            places = {one.place for one in failed}
            waiting = {key: waiting[key] for key, row in newest.items() if row.place in places and waiting[key]}
    return refused


def versions(table: Table[Any], rows: Sequence[_Row]) -> dict[tuple[Any, ...], list[_Row]]:
    """The rows of each natural key, oldest first (of two with the same time, the later arrival last); keys in their own order.

    One statement must not hold a key twice (PostgreSQL refuses it), and two writers that lock rows in the same order cannot
    wait for each other in a circle.
    """
    names = [column.name for column in table.primary_key.columns]
    by_key: dict[tuple[Any, ...], list[_Row]] = {}
    for row in rows:
        by_key.setdefault(tuple(row.values[name] for name in names), []).append(row)
    version = table.info["version"]
    for same in by_key.values():
        if len(same) > 1:
            same.sort(key=lambda row: row.values[version])
            if "first_seen_at" in table.c:  # however the stream is cut into batches, the oldest state counts
                for row in same:
                    row.values["first_seen_at"] = same[0].values[version]
    return dict(sorted(by_key.items()))


@cache
def upsert(table: Table[Any], dialect: str) -> Insert:
    """The statement for one table, to be executed with many rows."""
    insert = postgresql.insert(table) if dialect == "postgresql" else sqlite.insert(table)
    version = table.info["version"]
    kept = {column.name for column in table.primary_key.columns} | {"first_seen_at"}
    return insert.on_conflict_do_update(
        index_elements=list(table.primary_key.columns),
        set_={column.name: insert.excluded[column.name] for column in table.columns if column.name not in kept},
        where=insert.excluded[version] >= table.c[version],
    )


def _values(item: Stored, table: Table[Any]) -> dict[str, Any]:
    values = {name: value for name, value in msgspec.structs.asdict(item).items() if name in table.c}
    if "first_seen_at" in table.c:
        values["first_seen_at"] = values["fetched_at"]
    return values


def _store(connection: Connection, statement: Insert, rows: Sequence[_Row]) -> list[Refused]:
    """All rows in one go; when one is refused, halve until it stands alone: about 2 log2(n) more statements for each bad row."""
    try:
        with connection.begin_nested():
            connection.execute(statement, [row.values for row in rows])
    except (SQLAlchemyError, ValueError, OverflowError, TypeError) as error:
        reason = row_refusal(error)
        if reason is None:
            raise
        if len(rows) == 1:
            return [Refused(place=rows[0].place, reason=reason)]
        half = len(rows) // 2
        return _store(connection, statement, rows[:half]) + _store(connection, statement, rows[half:])
    return []
