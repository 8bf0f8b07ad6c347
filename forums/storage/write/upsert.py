"""Idempotent storage of many items at once, independent of their order.

Items of one kind are stored together, in a few statements. If the database refuses an item, the group is halved until the bad
item stands alone: about 2 log2(n) more rounds for each bad item. Sites and forums get rows at their first mention.

Readings of threads mark missing comments as removed and schedule the next check. Only the newest reading of each thread is kept,
and the time of the newest whole reading, so that a comment that is stored late is compared with it, too.

The index of words and the numbers of stored threads by board and month are kept with each write of posts and comments: counting
the rows of a large board takes seconds. A Trawl whose tables had version 4 knows neither, and may write in turns with this one or
in its place (`database.py`). The last transaction that is indexed and counted is noted in `event_outputs`: once another Trawl has
stored rows, all are indexed and counted again when a writer opens the database (`catch_up`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from operator import attrgetter
from typing import Any, cast

import msgspec
from sqlalchemy import (
    Column,
    Connection,
    Insert,
    Row,
    Select,
    Table,
    Update,
    and_,
    bindparam,
    case,
    func,
    insert,
    literal,
    or_,
    select,
    update,
)
from sqlalchemy.exc import SQLAlchemyError

from forums.freshness import Rechecks, RechecksOf, next_check
from forums.records.stored import NO_FORUMS, Check, Comment, Forum, Item, Post, Scan
from forums.storage.engine import keyed, rows_by_key, too_large
from forums.storage.errors import row_refusal
from forums.storage.schema import search_index
from forums.storage.schema.dialects import execute_many, upsert
from forums.storage.schema.tables import checks, comments, event_outputs, events, forums, posts, scans, sites
from redis_components.items.stream import by_halves

from .changes import ROWS, Change, ChangeKind, Refused, Written, lock_writers, note_position, reserved
from .posts_and_comments import store_forums, store_states

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


_Group = Sequence[tuple[int, Item]]  # with their indexes in the batch
_Store = Callable[[Connection, Sequence[Any]], object]


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
    indexed = is_indexed(connection)
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
    if changes and indexed:
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


_INDEXED = "indexed"
_DONE = select(event_outputs.c.seq).where(event_outputs.c.name == reserved(_INDEXED)).scalar_subquery()
_OF_OTHERS = select(events.c.seq).where(events.c.seq > _DONE, events.c.number > 0).limit(1)


def is_indexed(connection: Connection) -> bool:
    """Return True if the rows of all transactions in the log are indexed and counted."""
    return connection.execute(_OF_OTHERS).first() is None


def note_indexed(connection: Connection) -> None:
    """Note that the rows of all transactions up to the last one in the log are indexed and counted."""
    note_position(connection, _INDEXED, func.coalesce(select(func.max(events.c.seq)).scalar_subquery(), 0))


def catch_up(connection: Connection) -> None:
    """Index and count all rows again if others have stored some since `note_indexed`."""
    lock_writers(connection)
    if not is_indexed(connection):
        search_index.create(connection)
        fill(connection)


def fill(connection: Connection) -> None:
    """Index and count all stored rows, and note it; the index is empty."""
    search_index.fill(connection)
    search_index.count_threads(connection)
    note_indexed(connection)


# --- readings of threads

_OF_THREAD = (
    "listed_as",
    "reply_count",
    "last_reply_at",
    "asked",
    "counted_back",
    "walled",
)  # fields of a check without a column in `checks`
_COPIED = [name for name in Check.__struct_fields__ if name not in ("site", "id", "forum_id", *_OF_THREAD)]
_OF_CHECK = attrgetter("site", "id", *_COPIED)
_NAMES = ("site", "post_id", *_COPIED)


def store_checks(connection: Connection, items: Sequence[Check], rechecks: RechecksOf, changes: list[Change]) -> None:
    """Store `items`, mark the rows that they show to be removed, and schedule the next checks of their threads.

    The removals are added to `changes`.
    """
    rows = [_OF_CHECK(check) for check in items]
    execute_many(connection, _newest(connection.dialect.name), _NAMES, rows)
    of_list = [_list_values(check) for check in items if check.reply_count is not None or check.last_reply_at is not None]
    if of_list:
        connection.execute(_LISTED, sorted(of_list, key=lambda one: (one["of_site"], one["of_id"], one["at"])))
    counted = [{"of_site": one.site, "of_id": one.id, "count": one.comments} for one in items if one.counted_back]
    if counted:
        connection.execute(_PLACED, counted)
    gone = [_miss(check) for check in items if check.gone]
    whole = [_miss(check) for check in items if check.gone or (check.whole and check.consistent)]
    if whole:
        connection.execute(_latest(checks.c.whole_at), whole)
        changes += _to_remove(connection, comments, whole)
        connection.execute(_removed(comments, comments.c.post_id), whole)
    if gone:
        connection.execute(_latest(checks.c.gone_at), gone)
        changes += _to_remove(connection, posts, gone)
        connection.execute(_removed(posts, posts.c.id), gone)
    schedule(connection, {(check.site, check.id) for check in items}, rechecks)


def schedule(connection: Connection, threads: Iterable[tuple[str, str]], rechecks: RechecksOf) -> None:
    """Schedule the next check of each of `threads` (site, id) that was checked, from its newest check."""
    checked = list(rows_by_key(connection, _CHECKED, threads))
    whole = [(site, row.id) for site, row in checked if row.whole]
    seen = {(site, row.post_id): row for site, row in rows_by_key(connection, _OF_COMMENTS, whole)}
    planned = [_plan(site, row, seen.get((site, row.id)), rechecks(site)) for site, row in checked]
    if planned:
        execute_many(connection, _PLAN, ("of_site", "of_id", "checked_at", "next_check_at"), sorted(planned))


def _plan(site: str, row: Row[*tuple[Any, ...]], seen: Row[*tuple[Any, ...]] | None, rechecks: Rechecks) -> tuple[Any, ...]:
    """Return site, id, time of the check and next due time for a row of `_checked`; `seen`: its comments, if the reading was
    whole. A thread that was gone and still is, not only at a repeated request of one check, gets no further one.
    """
    changes = int(seen.changes) if seen else 0  # MySQL's sums are decimals
    changes += row.changed_at is not None and row.changed_at >= row.started_at and row.changed_at > row.first_seen_at
    until_s, shortest_s = rechecks.until_s, rechecks.min_interval_s
    wait_s = None
    if not (row.gone and row.deleted_at is not None and row.deleted_at + timedelta(seconds=shortest_s) < row.started_at):
        age_s = max(0.0, (row.finished_at - _newest_at(row, seen)).total_seconds())
        wait_s = next_check(age_s, changes, recheck_s=until_s, min_interval_s=shortest_s, requests=1 + row.last_page)
    due = None if wait_s is None else row.finished_at + timedelta(seconds=wait_s)
    return site, row.id, row.finished_at, due


def _newest_at(row: Row[*tuple[Any, ...]], seen: Row[*tuple[Any, ...]] | None) -> Any:
    """Return the time of the last known post in the thread: young threads are checked more often."""
    if row.mode == "changed" and not row.whole:
        return row.started_at  # the list shows a new post; its comments are not queried for that
    dates = [row.created_at, row.last_reply_at, (seen.written_at or seen.seen_at) if seen else None]
    return max((date for date in dates if date is not None), default=row.first_seen_at)


def _miss(check: Check) -> dict[str, Any]:
    return {"of_site": check.site, "of_id": check.id, "at": check.started_at}


def _list_values(check: Check) -> dict[str, Any]:
    of_list = {"replies": check.reply_count, "last_reply": check.last_reply_at}
    return {"of_site": check.site, "of_id": check.id, "at": check.finished_at, **of_list}


@cache
def _newest(dialect: str) -> Insert:
    return upsert(checks, dialect, _NAMES, where=lambda new: new.finished_at >= checks.c.finished_at)


@cache
def _latest(column: Column[Any]) -> Update:
    thread = and_(checks.c.site == bindparam("of_site"), checks.c.post_id == bindparam("of_id"))
    older = or_(column.is_(None), column < bindparam("at"))
    return update(checks).where(thread, older).values({column.name: bindparam("at")})


@cache
def _removed(table: Table[Any], thread: Column[Any]) -> Update:
    """Return the update that marks rows missing in a reading as removed, since the first such reading."""
    unseen = and_(table.c.site == bindparam("of_site"), thread == bindparam("of_id"), table.c.fetched_at < bindparam("at"))
    sooner = or_(table.c.deleted_at.is_(None), table.c.deleted_at > bindparam("at"))
    version = case((table.c.deleted_at.is_(None), table.c.version + 1), else_=table.c.version)
    ordered: Any = (table.c.version, version), (table.c.deleted_at, bindparam("at"))  # in MySQL an assignment sees earlier ones
    return update(table).where(unseen, sooner).ordered_values(*ordered)


def _to_remove(connection: Connection, table: Table[Any], readings: Iterable[dict[str, Any]]) -> list[Change]:
    """Return the changes of the rows that `_removed` will mark: rows that the newest reading, already stored, did not show."""
    threads = sorted({(one["of_site"], one["of_id"]) for one in readings})
    row = "post" if table is posts else "comment"
    return [
        Change(row, site, id_, thread, version + 1, ChangeKind.DELETED, digest or "", forum)
        for site, (id_, thread, version, digest, forum) in rows_by_key(connection, _unseen(table), threads)
    ]


@cache
def _unseen(table: Table[Any]) -> Select[*tuple[Any, ...]]:
    of_post: tuple[Any, ...] = posts.c.id, checks.c.gone_at, posts.c.forum_id
    thread, last, forum = of_post if table is posts else (comments.c.post_id, checks.c.whole_at, literal(""))
    return (
        select(table.c.id, thread, table.c.version, table.c.content_hash, forum)
        .join_from(table, checks, and_(checks.c.site == table.c.site, checks.c.post_id == thread))
        .where(keyed(thread))
        .where(table.c.fetched_at < last, table.c.deleted_at.is_(None))
        .order_by(thread, table.c.id)
    )


_CHECKED = (
    select(*[posts.c[name] for name in ("id", "created_at", "last_reply_at", "first_seen_at", "changed_at", "deleted_at")])
    .add_columns(*[checks.c[name] for name in ("started_at", "finished_at", "mode", "last_page", "whole", "gone")])
    .join_from(posts, checks, and_(checks.c.site == posts.c.site, checks.c.post_id == posts.c.id))
    .where(keyed(posts.c.id))
)
# Edits and deletions found by the newest reading of each thread, with the time of its newest comment, or of its first sight on a
# site without dates. Used only for readings of whole threads, which cost far more requests than this count.
_EDITED = and_(comments.c.changed_at >= checks.c.started_at, comments.c.changed_at > comments.c.first_seen_at)
_OF_COMMENTS = (
    select(
        comments.c.post_id,
        func.sum(case((or_(comments.c.deleted_at >= checks.c.started_at, _EDITED), 1), else_=0)).label("changes"),
        func.max(comments.c.created_at).label("written_at"),
        func.max(comments.c.first_seen_at).label("seen_at"),
    )
    .join_from(comments, checks, and_(checks.c.site == comments.c.site, checks.c.post_id == comments.c.post_id))
    .where(keyed(comments.c.post_id))
    .group_by(comments.c.post_id)
)
# For a thread whose first page was not read again: count and time from the list, unless a newer state was stored.
_LISTED: Update = (
    update(posts)
    .where(posts.c.site == bindparam("of_site"), posts.c.id == bindparam("of_id"))
    .where(or_(posts.c.checked_at.is_(None), posts.c.checked_at <= bindparam("at")), posts.c.fetched_at <= bindparam("at"))
    .values(
        reply_count=func.coalesce(bindparam("replies", type_=posts.c.reply_count.type), posts.c.reply_count),
        last_reply_at=func.coalesce(bindparam("last_reply", type_=posts.c.last_reply_at.type), posts.c.last_reply_at),
    )
)

# For a thread that was read backwards from its newest comment: its length was known only at the end.
_PLACED: Update = (
    update(comments)
    .where(comments.c.site == bindparam("of_site"), comments.c.post_id == bindparam("of_id"), comments.c.position <= 0)
    .values(position=comments.c.position + bindparam("count"))
)

_PLAN: Update = (
    update(posts)
    .where(posts.c.site == bindparam("of_site"), posts.c.id == bindparam("of_id"))
    .values(checked_at=bindparam("checked_at"), next_check_at=bindparam("next_check_at"))
)
