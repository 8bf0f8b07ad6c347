"""Idempotent storage of many items at once, independent of their order.

Items of one kind are stored together, in a few statements. If the database refuses an item, the group is halved until the bad
item stands alone: about 2 log2(n) more rounds for each bad item.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, cast

import msgspec
from sqlalchemy import Connection, Insert, Table
from sqlalchemy.exc import SQLAlchemyError

from forums.records.stored import Check, Comment, Forum, Post, RunRow, Scan, Stored
from forums.storage.engine import too_large
from forums.storage.errors import row_refusal
from forums.storage.fleet_events import run_changes
from forums.storage.schema.tables import comments, crawler_runs, posts, scans
from workers.consumers.sink import by_halves

from .bulk import upsert
from .event_log import append, lock_writers
from .gaps import find_gaps
from .posts_and_comments import store_states
from .removal_checks import doubt_unseen
from .row_changes import Change, is_of_fleet
from .sites_and_forums import store_forums, store_mentions
from .thread_checks import RechecksOf, schedule, store_checks


@dataclass(frozen=True, kw_only=True)
class Refused:
    """An item that the database refused."""

    place: int  # index in the batch
    reason: str


_Group = Sequence[tuple[int, Stored]]  # with their indexes in the batch
_Store = Callable[[Connection, Sequence[Any]], object]


@dataclass(frozen=True, kw_only=True)
class Written:
    """Result of a transaction, filled while it runs."""

    new: set[tuple[type[Stored], str, str]] = field(default_factory=set)
    """New posts and comments: (`Post` or `Comment`, site, id)."""
    changes: list[Change] = field(default_factory=list)


def store(connection: Connection, items: Sequence[Stored], rechecks: RechecksOf, written: Written) -> list[Refused]:
    """Store `items` in the connection's transaction; return the items that the database refused, in no particular order.

    `rechecks` is the recheck policy of each site. New rows and changes are added to `written`, changes also to the table
    `events`. Raises SQLAlchemy's error if the database failed.
    """
    new, changes = written.new, written.changes

    def store_posts(connection: Connection, items: Sequence[Post]) -> None:
        added = store_states(connection, posts, items, changes)
        new.update((Post, *key) for key in added)
        schedule(connection, added, rechecks)  # a check may have come before its post

    def store_comments(connection: Connection, items: Sequence[Comment]) -> None:
        new.update((Comment, *key) for key in store_states(connection, comments, items, changes))

    how: dict[type[Stored], _Store] = {  # in this order: checks read stored posts and comments, gaps read scans
        Forum: store_forums,
        Post: store_posts,
        Comment: store_comments,
        Scan: lambda connection, items: _store_scans(connection, items, changes),
        Check: lambda connection, items: store_checks(connection, items, rechecks, changes),
        RunRow: lambda connection, items: _store_runs(connection, items, changes),
    }
    lock_writers(connection)

    def mention(connection: Connection, items: Sequence[Stored]) -> None:
        store_mentions(connection, items, changes)

    refused = [Refused(place=place, reason=reason) for place, reason in too_large(connection, items).items()]
    large = {one.place for one in refused}
    refused += _store(connection, mention, [(place, item) for place, item in enumerate(items) if place not in large], changes)
    unmentioned = {one.place for one in refused}
    for kind, act in how.items():
        group = [(place, item) for place, item in enumerate(items) if type(item) is kind and place not in unmentioned]
        if group:
            refused += _store(connection, act, group, changes)
    append(connection, [one for one in changes if not is_of_fleet(one)])
    append(connection, [one for one in changes if is_of_fleet(one)])  # apart, for `EventLog.latest_of_fleet`
    return refused


def _store(connection: Connection, act: _Store, group: _Group, changes: list[Change]) -> list[Refused]:
    def at_once(part: Sequence[tuple[int, Any]]) -> str | None:
        before = len(changes)
        try:
            with connection.begin_nested():
                act(connection, [item for _, item in part])
        except (SQLAlchemyError, ValueError, OverflowError, TypeError) as error:
            del changes[before:]  # they were rolled back
            if (reason := row_refusal(error)) is None:
                raise
            return reason
        return None

    return [Refused(place=place, reason=reason) for (place, _), reason in by_halves(at_once, group)]


def _store_scans(connection: Connection, items: Sequence[Scan], changes: list[Change]) -> None:
    of_lists = [item for item in items if item.mode != "back"]
    if of_lists:
        store_newest(connection, scans, of_lists)
        find_gaps(connection, of_lists, changes)
    doubt_unseen(connection, [item for item in items if item.seen])


def _store_runs(connection: Connection, items: Sequence[RunRow], changes: list[Change]) -> None:
    changes += run_changes(connection, items)
    store_newest(connection, crawler_runs, items)


def store_newest(connection: Connection, table: Table[Any], records: Sequence[msgspec.Struct]) -> None:
    """Upsert records whose fields are the columns of `table`: of two with the same key the newer one stays."""
    names = [column.name for column in table.columns]
    rows = [{name: getattr(record, name) for name in names} for record in records]
    connection.execute(newest(table, connection.dialect.name), rows)


@cache
def newest(table: Table[Any], dialect: str) -> Insert:
    """Return the upsert of one table, to be executed with many rows."""
    version = cast("str", table.info["version"])
    names = [column.name for column in table.columns]
    return upsert(table, dialect, names, where=lambda new: new[version] >= table.c[version])
