"""Sites and forums: a row for each that anything came from, and what index pages say of forums."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any

from sqlalchemy import Connection, Insert, Table, Update, bindparam, or_, update
from sqlalchemy.dialects import postgresql, sqlite

from workers.spiders.task_data import INDEX

from .bulk import execute_many
from .records import Check, Comment, Forum, Post, RunRow, Scan, Stored
from .tables import forums, sites

_NEVER = datetime.max.replace(tzinfo=UTC)


def store_mentions(connection: Connection, items: Sequence[Stored]) -> None:
    """Rows for the sites and forums that `items` name; the oldest time of a mention stays."""
    seen_sites: dict[str, datetime] = {}
    seen_forums: dict[tuple[str, str], datetime] = {}
    for item in items:
        if isinstance(item, RunRow):
            continue
        at = item.started_at if isinstance(item, Scan | Check) else item.fetched_at
        if at < seen_sites.get(item.site, _NEVER):
            seen_sites[item.site] = at
        if isinstance(item, Comment):  # most of them are; they name no forum
            continue
        if forum_id := _forum_of(item):
            key = item.site, forum_id
            seen_forums[key] = min(at, seen_forums.get(key, at))
    if not seen_sites:
        return
    dialect = connection.dialect.name
    named = [{"name": site, "first_seen_at": at} for site, at in sorted(seen_sites.items())]
    execute_many(connection, _oldest(sites, dialect), named)
    if seen_forums:
        rows = [{"site": site, "id": id_, "first_seen_at": at} for (site, id_), at in sorted(seen_forums.items())]
        execute_many(connection, _oldest(forums, dialect), rows)


def store_forums(connection: Connection, items: Sequence[Forum]) -> None:
    """What index pages say, into rows that `store_mentions` made; the newest counts."""
    rows = [
        {"of_site": item.site, "of_id": item.id}
        | {name: getattr(item, name) for name in ("name", "url", "parent_id", "threads", "fetched_at")}
        for item in items
    ]
    connection.execute(_UPDATE_FORUM, rows)


def store_site_files(connection: Connection, described: Mapping[str, tuple[str | None, str]], now: datetime) -> None:
    """Profile and address of each site, as its site file says; for sites without a row, `now` is when they were seen first."""
    rows = [
        {"name": name, "first_seen_at": now, "profile": profile, "base_url": url}
        for name, (profile, url) in sorted(described.items())
    ]
    if rows:
        insert = _insert(sites, connection.dialect.name)
        changed = {name: insert.excluded[name] for name in ("profile", "base_url")}
        connection.execute(insert.on_conflict_do_update(index_elements=[sites.c.name], set_=changed), rows)


def _forum_of(item: Stored) -> str | None:
    match item:
        case Post() | Check():
            return item.forum_id
        case Scan():
            return None if item.forum_id == INDEX else item.forum_id
        case Forum():
            return item.id
    return None


def _insert(table: Table[Any], dialect: str) -> Any:
    return postgresql.insert(table) if dialect == "postgresql" else sqlite.insert(table)


@cache
def _oldest(table: Table[Any], dialect: str) -> Insert:
    insert = _insert(table, dialect)
    names = [column.name for column in table.primary_key.columns] + ["first_seen_at"]
    insert = insert.values({name: bindparam(name) for name in names})
    statement: Insert = insert.on_conflict_do_update(
        index_elements=list(table.primary_key.columns),
        set_={"first_seen_at": insert.excluded.first_seen_at},
        where=insert.excluded.first_seen_at < table.c.first_seen_at,
    )
    return statement


_UPDATE_FORUM: Update = (
    update(forums)
    .where(
        forums.c.site == bindparam("of_site"),
        forums.c.id == bindparam("of_id"),
        or_(forums.c.fetched_at.is_(None), forums.c.fetched_at <= bindparam("fetched_at")),
    )
    .values({name: bindparam(name) for name in ("name", "url", "parent_id", "threads", "fetched_at")})
)
