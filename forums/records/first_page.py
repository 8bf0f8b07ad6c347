"""Comparison of a forum's first list page with that of the previous scan, to find removed and retitled threads. Pure.

In a list in the order of activity, newer threads push a thread down. A thread that was on the first page and is not any more,
although threads that were active before it are, was removed, or moved to another forum, or lost its last comments. No row shows
that, since no remaining thread changed. New titles, found by the same comparison, are edits of opening posts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from forum_reader.reading.read_page import ListedThread

TRAIL = 3
"""Rows at the end of a page that must be older: single rows may be out of order, such as a thread that was moved."""
AT_LEAST = 3
"""Rows that may vanish at once from a short page; from a long page half of them. More mean that the list is sorted otherwise."""
MOST_KEPT = 500
"""Rows of a first page that are kept for the next scan; pages of forums have 20 to 300."""
_MOST_CHARACTERS = 1 << 16


class FrontRow(msgspec.Struct, frozen=True, array_like=True):
    """A thread on the first page."""

    id: str
    token: str
    at: datetime | None  # last activity; None if the row's position does not depend on it
    title: str  # digest; empty if the list shows none
    url: str | None = None


def front_of(threads: Sequence[ListedThread], order: str) -> tuple[FrontRow, ...]:
    """Return the rows of a first page to keep, none of an oversized page, since only a complete one can be compared. They are
    part of each request of their scan, and stored in Redis for each forum of a site.
    """
    if len(threads) > MOST_KEPT or sum(map(_size, threads)) > _MOST_CHARACTERS:
        return ()
    return tuple(
        FrontRow(one.id, one.token, None if one.sticky or order != "activity" else one.last_activity, _digest(one), one.url)
        for one in threads
    )


def vanished(before: Sequence[FrontRow], threads: Sequence[ListedThread], *, has_next: bool) -> list[FrontRow]:
    """Return the rows of `before` that should still be among `threads`, the present first page, and are not. Empty if the list
    shows no dates, or dates that change with the time of day ("3 hours ago").
    """
    there = {one.id: one for one in threads}
    dates = [one.last_activity for one in threads if not one.sticky and one.last_activity is not None]
    same = [(row.at, one.last_activity) for row in before if row.at and (one := there.get(row.id)) and one.token == row.token]
    if not threads or (has_next and not dates) or any(was != now for was, now in same):
        return []
    end = max(dates[-TRAIL:]) if has_next else None
    gone = [row for row in before if row.at is not None and row.id not in there and (end is None or row.at > end)]
    return gone if is_believable(len(gone), len(before)) else []


def retitled(before: Sequence[FrontRow], threads: Sequence[ListedThread]) -> list[ListedThread]:
    """Return the threads with another title than in `before`."""
    titles = {row.id: row.title for row in before}
    found = [one for one in threads if titles.get(one.id) and (title := _digest(one)) and title != titles[one.id]]
    return found if is_believable(len(found), len(before)) else []


def is_believable(number: int, rows: int) -> bool:
    """Return True if so many of `rows` rows may vanish at once."""
    return number <= max(AT_LEAST, rows // 2)


def _size(thread: ListedThread) -> int:
    return len(thread.id) + len(thread.token) + len(thread.url or "")


def _digest(thread: ListedThread) -> str:
    title = thread.title or ""
    return title and hashlib.blake2b(title.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
