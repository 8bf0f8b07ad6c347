"""Rows of sites and forums: created at the first mention, filled from index pages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any

from sqlalchemy import Connection, Insert, Table, Update, bindparam, or_, select, update

from forums.records.start_tasks import NO_FORUMS
from forums.records.stored import Check, Comment, Forum, Post, RunRow, Scan, Stored
from forums.storage.engine import among, listed
from forums.storage.fleet_events import new_forums
from forums.storage.schema.tables import forums, sites

from .bulk import execute_many, upsert
from .row_changes import Change

_NEVER = datetime.max.replace(tzinfo=UTC)


def store_mentions(connection: Connection, items: Sequence[Stored], changes: list[Change]) -> None:
    """Insert rows for the sites and forums that `items` name; the oldest time of a mention stays. New forums go into
    `changes`.
    """
    seen_sites: dict[str, datetime] = {}
    seen_forums: dict[tuple[str, str], datetime] = {}
    for item in items:
        if isinstance(item, Comment):  # the most frequent kind; a comment names no forum
            at, forum_id = item.fetched_at, None
        elif isinstance(item, RunRow):
            continue
        else:
            at = item.started_at if isinstance(item, Scan | Check) else item.fetched_at
            forum_id = _forum_of(item)
        if at < seen_sites.get(item.site, _NEVER):
            seen_sites[item.site] = at
        if forum_id:
            key = item.site, forum_id
            seen_forums[key] = min(at, seen_forums.get(key, at))
    if not seen_sites:
        return
    dialect = connection.dialect.name
    execute_many(connection, _oldest(sites, dialect), ("name", "first_seen_at"), sorted(seen_sites.items()))
    if seen_forums:
        known = _known(connection, seen_forums)
        changes += new_forums(sorted(seen_forums.keys() - known), seen_forums)
        rows = [(*key, at) for key, at in sorted(seen_forums.items())]
        execute_many(connection, _oldest(forums, dialect), ("site", "id", "first_seen_at"), rows)


def _known(connection: Connection, keys: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
    """Return the keys that have a row."""
    ids, dialect = sorted({key[1] for key in keys}), connection.dialect.name
    query = select(forums.c.site, forums.c.id).where(among(forums.c.id, dialect))
    return {(site, id_) for site, id_ in connection.execute(query, {"among": listed(ids, dialect)})}


def store_forums(connection: Connection, items: Sequence[Forum]) -> None:
    """Update rows made by `store_mentions` with values of index pages; the newest page wins."""
    rows = [
        {"of_site": item.site, "of_id": item.id}
        | {name: getattr(item, name) for name in ("name", "url", "parent_id", "threads", "fetched_at")}
        for item in items
    ]
    connection.execute(_UPDATE_FORUM, rows)


def store_site_files(connection: Connection, described: Mapping[str, tuple[str | None, str]], now: datetime) -> None:
    """Store profile and address of each site from its site file; `now` is the first sight of sites without a row."""
    rows = [(name, now, *profile_and_url) for name, profile_and_url in sorted(described.items())]
    if rows:
        execute_many(connection, _described(connection.dialect.name), _OF_SITE, rows)


def _forum_of(item: Stored) -> str | None:
    match item:
        case Post() | Check():
            return item.forum_id
        case Scan():
            return None if item.forum_id in NO_FORUMS else item.forum_id
        case Forum():
            return item.id
    return None


@cache
def _oldest(table: Table[Any], dialect: str) -> Insert:
    names = [column.name for column in table.primary_key.columns] + ["first_seen_at"]
    return upsert(table, dialect, names, where=lambda new: new.first_seen_at < table.c.first_seen_at)


@cache
def _described(dialect: str) -> Insert:
    return upsert(sites, dialect, _OF_SITE, changed=("profile", "base_url"))


_OF_SITE = ("name", "first_seen_at", "profile", "base_url")
_UPDATE_FORUM: Update = (
    update(forums)
    .where(
        forums.c.site == bindparam("of_site"),
        forums.c.id == bindparam("of_id"),
        or_(forums.c.fetched_at.is_(None), forums.c.fetched_at <= bindparam("fetched_at")),
    )
    .values({name: bindparam(name) for name in ("name", "url", "parent_id", "threads", "fetched_at")})
)
