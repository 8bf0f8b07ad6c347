"""Numbers of stored threads by board and month, kept with each write: counting the rows of a large board takes seconds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, bindparam, delete, select, update

from forums.storage.schema.tables import board_months, posts

BoardMonth = tuple[str, str, str]  # site, board, month


def board_month(site: str, board: str, created_at: Any, first_seen_at: Any) -> BoardMonth:
    """Return the place where a thread counts. Times are of the driver: SQLite's are text."""
    at = created_at or first_seen_at
    if isinstance(at, datetime):
        at = at.astimezone(UTC) if at.tzinfo else at
        return site, board, f"{at.year:04}-{at.month:02}"
    return site, board, at[:7]


def add(connection: Connection, numbers: Mapping[BoardMonth, int]) -> None:
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


def fill(connection: Connection) -> None:
    """Count all stored threads."""
    rows = connection.execute(select(posts.c.site, posts.c.forum_id, posts.c.created_at, posts.c.first_seen_at))
    numbers = Counter(board_month(*row) for row in rows)
    connection.execute(delete(board_months))
    add(connection, numbers)
