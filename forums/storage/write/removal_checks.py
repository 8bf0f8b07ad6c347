"""Removals and edits shown by scans of a site's newest messages: the affected threads are checked at once.

A page of the newest messages covers a period. A stored message of that period, of a thread on the page, that the page does not
show was removed, or is of a kind that the page never shows. A check of the thread decides. The thread is checked for this
message only once in a part of the message's age.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from sqlalchemy import Connection, Select, Update, bindparam, or_, select, update

from forums.records.first_page import is_believable
from forums.records.stored import Scan, SeenMessage, text_digest
from forums.storage.engine import among, listed
from forums.storage.schema.tables import checks, comments, posts

AGAIN, AGAIN_MOST = 0.25, timedelta(days=1)
"""A message is not doubted within this part of its age, and at most a day, after it was seen or its thread was checked."""


def doubt_unseen(connection: Connection, looks: Sequence[Scan]) -> None:
    """Schedule checks of threads with stored messages that these looks do not show."""
    dialect = connection.dialect.name
    for look in looks:
        doubted = dict(doubt for window in look.seen for doubt in _doubted(connection, look, window))
        if not doubted:
            continue
        given = {"site": look.site, "among": listed(sorted(doubted), dialect)}
        checked: dict[str, datetime] = {thread: at for thread, at in connection.execute(_checked(dialect), given)}  # noqa: C416
        news = [thread for thread, since in doubted.items() if thread not in checked or checked[thread] < since]
        if news:
            connection.execute(_check_at_once(dialect), {"of_site": look.site, "among": listed(sorted(news), dialect)})


def _doubted(connection: Connection, look: Scan, window: Sequence[SeenMessage]) -> Iterator[tuple[str, datetime]]:
    """Yield threads with stored messages missing on a page, each with the time after which a check makes another one needless."""
    dates = [one.at for one in window if one.at is not None]
    if not dates:
        return
    dialect, first, last = connection.dialect.name, min(dates), max(dates)
    threads = {one.thread for one in window}
    given = {"site": look.site, "among": listed(sorted(threads), dialect), "first": first, "last": last}
    there = {one.id for one in window}
    missing = [row for row in connection.execute(_of_window(dialect), given) if row.id not in there]
    for row in missing if is_believable(len(missing), len(window)) else ():
        since = _since(look, row.created_at)
        if row.fetched_at < since:
            yield row.post_id, since
    texts = {one.thread: one for one in window if one.opening is not None}
    if texts:
        given = {"site": look.site, "among": listed(sorted(texts), dialect)}
        for thread, body, fetched_at in connection.execute(_openings(dialect), given):
            seen = texts[thread]
            if text_digest(body) != seen.opening and fetched_at < look.started_at:
                yield thread, _since(look, seen.at or look.started_at)


def _since(look: Scan, written_at: datetime) -> datetime:
    """Return the time after which a message must not have been seen to be doubted."""
    return look.started_at - min(AGAIN * (look.started_at - written_at), AGAIN_MOST)


@cache
def _of_window(dialect: str) -> Select[*tuple[Any, ...]]:
    within = comments.c.created_at > bindparam("first"), comments.c.created_at < bindparam("last")
    return select(comments.c.id, comments.c.post_id, comments.c.created_at, comments.c.fetched_at).where(
        comments.c.site == bindparam("site"), among(comments.c.post_id, dialect), comments.c.deleted_at.is_(None), *within
    )


@cache
def _openings(dialect: str) -> Select[*tuple[Any, ...]]:
    there = posts.c.site == bindparam("site"), among(posts.c.id, dialect), posts.c.deleted_at.is_(None)
    return select(posts.c.id, posts.c.body, posts.c.fetched_at).where(*there)


@cache
def _checked(dialect: str) -> Select[*tuple[Any, ...]]:
    """Select the times of checks, for threads whose newest reading is a check."""
    of_site = checks.c.site == bindparam("site"), among(checks.c.post_id, dialect), checks.c.mode == "check"
    return select(checks.c.post_id, checks.c.started_at).where(*of_site)


@cache
def _check_at_once(dialect: str) -> Update:
    """Return the statement that makes threads due before all others: their whole check interval counts as overdue."""
    of_site = posts.c.site == bindparam("of_site"), among(posts.c.id, dialect), posts.c.deleted_at.is_(None)
    waits = or_(posts.c.next_check_at.is_(None), posts.c.next_check_at > posts.c.checked_at)
    return update(posts).where(*of_site, posts.c.checked_at.is_not(None), waits).values(next_check_at=posts.c.checked_at)
