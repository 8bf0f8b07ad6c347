"""Storage of readings of threads, which mark missing comments as removed and schedule the next check.

A consistent reading of the whole thread shows removals by what is missing. Only the newest reading of each thread is kept, and
the time of the newest whole reading, so that a comment that is stored late is compared with it, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from operator import attrgetter
from typing import Any

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
    literal,
    or_,
    select,
    update,
)

from forums.freshness import next_check
from forums.records.stored import Check
from forums.state.database_state import ThreadRecord
from forums.storage.engine import keyed, rows_by_key
from forums.storage.schema.dialects import execute_many, upsert
from forums.storage.schema.tables import checks, comments, posts

from .changes import Change, ChangeKind


@dataclass(frozen=True, kw_only=True)
class Rechecks:
    """Recheck policy of a site: threads are checked until `until_s` after their last post. `min_interval_s`, the shortest time
    between scans of its forums, also bounds how often its threads are checked.
    """

    until_s: float = 30 * 86_400.0
    min_interval_s: float = 30.0


RechecksOf = Callable[[str], Rechecks]
"""Returns the policy of a site, by its name."""

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
    counted = [_counted(check) for check in items if check.counted_back]
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
    whole. A thread that was already gone and still is gets no further check.
    """
    changes = int(seen.changes) if seen else 0  # MySQL's sums are decimals
    changes += row.changed_at is not None and row.changed_at >= row.started_at and row.changed_at > row.first_seen_at
    wait_s = None
    if not (row.gone and row.deleted_at is not None and row.deleted_at < row.started_at):
        age_s = max(0.0, (row.finished_at - _newest_at(row, seen)).total_seconds())
        until_s, shortest_s = rechecks.until_s, rechecks.min_interval_s
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


def _counted(check: Check) -> dict[str, Any]:
    return {"of_site": check.site, "of_id": check.id, "count": check.comments}


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
    of_posts = table is posts
    thread = posts.c.id if of_posts else comments.c.post_id
    last = checks.c.gone_at if of_posts else checks.c.whole_at
    forum: Any = posts.c.forum_id if of_posts else literal("")
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


def thread_record(check: Check | Row[*tuple[Any, ...]]) -> ThreadRecord:
    """Return the record of a thread by its newest check, or by the row of that in `checks`."""
    started_s = int(check.started_at.timestamp())
    return ThreadRecord(
        token=check.token or "",
        comments=check.comments if check.total is None else check.total,
        last_page=0 if check.gone else max(1, check.last_page),
        last_comment=check.last_comment_id,
        cursor=check.cursor,
        hour=started_s // 3600,
        listed=check.listed,
        short=check.short,
        told_at=started_s if check.token is None else None,
    )


NEWEST_READINGS = select(checks).where(or_(checks.c.reason.is_(None), checks.c.gone)).order_by(checks.c.finished_at.desc())
"""Those of threads that were read as a whole, or are gone."""
