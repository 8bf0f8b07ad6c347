"""Index of words and numbers of stored threads by board and month, which are kept with each write of posts and comments:
counting the rows of a large board takes seconds.

A Trawl whose tables had version 4 knows neither, and may write in turns with this one or in its place (`schema/version.py`). The
last transaction that is indexed and counted is noted in `event_outputs`, so the log of events names the rows of the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, bindparam, delete, func, select, update

from forums.storage.engine import keyed, rows_by_key
from forums.storage.schema import search_index
from forums.storage.schema.tables import board_months, event_outputs, events, posts

from .event_log import NO_TEXT, Change, ChangeKind, changes_of, note_position, reserved

BoardMonth = tuple[str, str, str]  # site, board, month


def board_month(site: str, board: str, created_at: Any, first_seen_at: Any) -> BoardMonth:
    """Return the place where a thread counts. Times are of the driver: SQLite's are text."""
    at = created_at or first_seen_at
    if isinstance(at, datetime):
        at = at.astimezone(UTC) if at.tzinfo else at
        return site, board, f"{at.year:04}-{at.month:02}"
    return site, board, at[:7]


def add_threads(connection: Connection, numbers: Mapping[BoardMonth, int]) -> None:
    """Add numbers of threads. The transaction excludes other writers."""
    for (site, board, month), number in sorted(numbers.items()):
        values = {"of_site": site, "of_board": board, "of_month": month, "more": number}
        if number and not connection.execute(_ADD, values).rowcount:
            connection.execute(board_months.insert().values(site=site, forum_id=board, month=month, threads=number))


_C = board_months.c
_ADD = (
    update(board_months)
    .where(_C.site == bindparam("of_site"), _C.forum_id == bindparam("of_board"), _C.month == bindparam("of_month"))
    .values(threads=_C.threads + bindparam("more"))
)


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
