"""Comparison of items with the stored rows, field by field (`trawl reparse --dry-run`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Table, select

from forums.records.stored import Comment, Post
from forums.storage.database import Database
from forums.storage.engine import among, listed
from forums.storage.schema.tables import comments, posts

_TABLES: tuple[tuple[type[Post | Comment], Table[Any]], ...] = ((Post, posts), (Comment, comments))
_LEFT_OUT = frozenset({"site", "id", "fetched_at", "deleted"})


def differences(database: Database, items: Sequence[Any]) -> Counter[tuple[str, str]]:
    """Count the effects of storing `items`, by table and effect: (`comments`, `new`), (…, `same`), (…, `older than stored`), and
    for each field (…, `body gained`), (…, `body lost`), (…, `body changed`).

    Of several states of one row the newest counts. Raises StorageError.
    """
    found: Counter[tuple[str, str]] = Counter()
    for kind, table in _TABLES:
        newest: dict[tuple[str, str], Post | Comment] = {}
        for item in items:
            if type(item) is kind and not item.deleted:
                known = newest.get((item.site, item.id))
                if known is None or item.fetched_at >= known.fetched_at:
                    newest[item.site, item.id] = item
        if newest:
            stored = _stored(database, table, newest)
            for key, item in newest.items():
                found.update((table.name, what) for what in _changes(item, stored.get(key)))
    return found


def _changes(item: Post | Comment, row: dict[str, Any] | None) -> list[str]:
    if row is None:
        return ["new"]
    if row["fetched_at"] > item.fetched_at:
        return ["older than stored"]
    changes = []
    for name, before in row.items():
        after = getattr(item, name, before)
        if name in _LEFT_OUT or after == before or (name == "forum_id" and after is None):  # the stored forum is kept then
            continue
        how = "gained" if before in (None, "") else "lost" if after in (None, "") else "changed"
        changes.append(f"{name} {how}")
    return changes or ["same"]


def _stored(database: Database, table: Table[Any], keys: Iterable[tuple[str, str]]) -> dict[tuple[str, str], dict[str, Any]]:
    by_site: dict[str, list[str]] = {}
    for site, id_ in keys:
        by_site.setdefault(site, []).append(id_)
    dialect = database.engine.dialect.name
    found = {}
    with database.translated(), database.engine.connect() as connection:
        for site, ids in by_site.items():
            query = select(table).where(table.c.site == site, among(table.c.id, dialect))
            for row in connection.execute(query, {"among": listed(ids, dialect)}).mappings():
                found[site, row["id"]] = dict(row)
    return found
