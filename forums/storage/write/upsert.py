"""Idempotent storage of many items at once, independent of their order.

Items of one kind are stored together, in a few statements. If the database refuses an item, the group is halved until the bad
item stands alone: about 2 log2(n) more rounds for each bad item. Sites and forums get rows at their first mention.

The index of words and the numbers of stored threads by board and month are kept with each write of posts and comments: counting
the rows of a large board takes seconds. A Trawl whose tables had version 4 knows neither, and may write in turns with this one or
in its place (`database.py`). The last transaction that is indexed and counted is noted in `event_outputs`, so the log of events
names the rows of the others (`catch_up`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from typing import Any, cast

import msgspec
from sqlalchemy import Connection, Insert, Table, Update, bindparam, delete, func, insert, or_, select, update
from sqlalchemy.exc import SQLAlchemyError

from forums.records.stored import NO_FORUMS, Check, Comment, Forum, Item, Post, Scan
from forums.storage.engine import keyed, rows_by_key, too_large
from forums.storage.errors import row_refusal
from forums.storage.schema import search_index
from forums.storage.schema.dialects import execute_many, upsert
from forums.storage.schema.tables import board_months, comments, event_outputs, events, forums, posts, scans, sites
from redis_components.items.stream import by_halves

from .changes import NO_TEXT, ROWS, Change, ChangeKind, changes_of, lock_writers, note_position, reserved
from .posts_and_comments import BoardMonth, add_threads, board_month, store_states
from .reports import RechecksOf, schedule, store_checks

_NEVER = datetime.max.replace(tzinfo=UTC)


def store_mentions(connection: Connection, items: Sequence[Item]) -> None:
    """Insert rows for the sites and forums that `items` name; the oldest time of a mention stays."""
    seen_sites: dict[str, datetime] = {}
    seen_forums: dict[tuple[str, str], datetime] = {}
    for item in items:
        if isinstance(item, Comment):  # the most frequent kind; a comment names no forum
            at, forum_id = item.fetched_at, None
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
        rows = [(*key, at) for key, at in sorted(seen_forums.items())]
        execute_many(connection, _oldest(forums, dialect), ("site", "id", "first_seen_at"), rows)


def store_forums(connection: Connection, items: Sequence[Forum]) -> None:
    """Update rows made by `store_mentions` with values of index pages; the newest page wins."""
    rows = [
        {"of_site": item.site, "of_id": item.id}
        | {name: getattr(item, name) for name in ("name", "url", "parent_id", "threads", "fetched_at")}
        for item in items
    ]
    connection.execute(_UPDATE_FORUM, rows)


def _forum_of(item: Item) -> str | None:
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


_UPDATE_FORUM: Update = (
    update(forums)
    .where(
        forums.c.site == bindparam("of_site"),
        forums.c.id == bindparam("of_id"),
        or_(forums.c.fetched_at.is_(None), forums.c.fetched_at <= bindparam("fetched_at")),
    )
    .values({name: bindparam(name) for name in ("name", "url", "parent_id", "threads", "fetched_at")})
)


@dataclass(frozen=True, kw_only=True)
class Refused:
    """An item that the database refused."""

    place: int  # index in the batch
    reason: str


_Group = Sequence[tuple[int, Item]]  # with their indexes in the batch
_Store = Callable[[Connection, Sequence[Any]], object]


@dataclass(frozen=True, kw_only=True)
class Written:
    """Result of a transaction, filled while it runs."""

    new: set[tuple[type[Item], str, str]] = field(default_factory=set)
    """New posts and comments: (`Post` or `Comment`, site, id)."""
    changes: list[Change] = field(default_factory=list)
    dropped: set[int] = field(default_factory=set)
    """Places in the batch of items of removed sites."""


def store(
    connection: Connection,
    items: Sequence[Item],
    rechecks: RechecksOf,
    written: Written,
    removed: Callable[[], Collection[str]] = frozenset,
) -> list[Refused]:
    """Store `items` in the connection's transaction; return the items that the database refused, in no particular order.

    `rechecks` is the recheck policy of each site. New rows and changes are added to `written`, changes also to the table
    `events`. Items of the sites that `removed` returns, once no other writer is at work, are dropped. Raises SQLAlchemy's
    error if the database failed.
    """
    new, changes = written.new, written.changes

    def store_posts(connection: Connection, items: Sequence[Post]) -> None:
        added = store_states(connection, posts, items, changes)
        new.update((Post, *key) for key in added)
        schedule(connection, added, rechecks)  # a check may have come before its post

    def store_comments(connection: Connection, items: Sequence[Comment]) -> None:
        new.update((Comment, *key) for key in store_states(connection, comments, items, changes))

    how: dict[type[Item], _Store] = {  # in this order: checks read stored posts and comments
        Forum: store_forums,
        Post: store_posts,
        Comment: store_comments,
        Scan: _store_scans,
        Check: lambda connection, items: store_checks(connection, items, rechecks, changes),
    }
    lock_writers(connection)
    catch_up(connection)
    refused = [Refused(place=place, reason=reason) for place, reason in too_large(connection, items).items()]
    gone = removed()
    written.dropped.update(place for place, item in enumerate(items) if item.site in gone)
    large = {one.place for one in refused} | written.dropped
    others = [(place, item) for place, item in enumerate(items) if place not in large]
    refused += _store(connection, store_mentions, others, changes)
    unmentioned = {one.place for one in refused} | written.dropped
    for kind, act in how.items():
        group = [(place, item) for place, item in enumerate(items) if type(item) is kind and place not in unmentioned]
        if group:
            refused += _store(connection, act, group, changes)
    append(connection, changes)
    if changes:
        note_indexed(connection)
    return refused


def append(connection: Connection, changes: Sequence[Change]) -> None:
    """Store the changes of the connection's transaction, if there are any."""
    if changes:
        written = msgspec.json.encode(changes).decode()
        number = sum(one.row in ROWS for one in changes)
        connection.execute(insert(events), {"stored_at": datetime.now(UTC), "number": number, "changes": written})


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


def _store_scans(connection: Connection, items: Sequence[Scan]) -> None:
    of_lists = [item for item in items if item.mode != "back"]  # of the version before: a look back, which scans no list
    if of_lists:
        store_newest(connection, scans, of_lists)


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


def count_threads(connection: Connection) -> None:
    """Count all stored threads."""
    rows = connection.execute(select(posts.c.site, posts.c.forum_id, posts.c.created_at, posts.c.first_seen_at))
    numbers = Counter(board_month(*row) for row in rows)
    connection.execute(delete(board_months))
    add_threads(connection, numbers)


_INDEXED = "indexed"
_AT_ONCE = 20  # transactions
_SEQ = events.c.seq
_PROGRESS = select(event_outputs.c.seq, select(func.min(_SEQ)).scalar_subquery(), select(func.max(_SEQ)).scalar_subquery()).where(
    event_outputs.c.name == reserved(_INDEXED)
)
_MONTHS = select(posts.c.forum_id, posts.c.created_at, posts.c.first_seen_at).where(keyed(posts.c.id))


def note_indexed(connection: Connection) -> None:
    """Note that the rows of all transactions up to the last one in the log are indexed and counted."""
    note_position(connection, _INDEXED, func.coalesce(select(func.max(_SEQ)).scalar_subquery(), 0))


def catch_up(connection: Connection) -> None:
    """Index and count what others have stored since `note_indexed`. The transaction excludes other writers."""
    done, oldest, last = connection.execute(_PROGRESS).one_or_none() or (None, None, None)
    if done is None or last is None or last <= done:
        return
    if oldest > done + 1:  # some of their transactions are too old for the log
        search_index.create(connection)
        fill(connection)
        return
    _index_after(connection, done)
    note_indexed(connection)


def _index_after(connection: Connection, done: int) -> None:
    """Index and count the rows of the transactions after `done`."""
    numbers, moved = Counter[BoardMonth](), False
    query = select(_SEQ, events.c.changes).order_by(_SEQ).limit(_AT_ONCE)
    while found := connection.execute(query.where(done < _SEQ)).all():
        done = found[-1].seq
        changes = [one for row in found for one in changes_of(row.changes)]
        for kind in ("post", "comment"):
            search_index.index_again(
                connection, kind, sorted({(one.site, one.id) for one in changes if one.row == kind and one.id})
            )
        new = [(one.site, one.id) for one in changes if one.row == "post" and _is_first(one)]
        numbers.update(board_month(site, *row) for site, row in rows_by_key(connection, _MONTHS, new))
        moved |= any(one.kind == ChangeKind.MOVED for one in changes)
    if moved:
        count_threads(connection)
    else:
        add_threads(connection, numbers)


def _is_first(change: Change) -> bool:
    """Return True if the change stored its row, also where it was seen as removed only."""
    return change.version == 1 and (change.kind == ChangeKind.NEW or change.hash == NO_TEXT)


def fill(connection: Connection) -> None:
    """Index and count all stored rows, and note it; the index is empty."""
    search_index.fill(connection)
    count_threads(connection)
    note_indexed(connection)
