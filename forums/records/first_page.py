"""The first page of a forum's list as a scan leaves it to the next one, which sees what was removed from it. Pure.

In a list in the order of activity, others push a thread down. One that stood on the first page and does not any more, although
threads that were active before it do, was removed, or moved to another forum, or lost its last comments. No row says so: nothing
changed that is still there. The same comparison finds new titles, which are edits of opening posts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from forums.sites.reading.read_page import ListedThread

TRAIL = 3
"""So many rows at the end of a page must be old: single ones stand where they do not belong, such as a thread that was moved."""
AT_LEAST = 3
"""So many rows of a short page may go at once, of a long one half. Where more do, it is a list that is sorted otherwise."""
MOST_KEPT = 500
"""Rows of a first page that a scan leaves to the next one; pages of forums have 20 to 300."""
_MOST_CHARACTERS = 1 << 16


class FrontRow(msgspec.Struct, frozen=True, array_like=True):
    """A thread on the first page."""

    id: str
    token: str
    at: datetime | None  # last activity; None where the row's place does not depend on it
    title: str  # digest; empty where the list shows none
    url: str | None = None


def front_of(threads: Sequence[ListedThread], order: str) -> tuple[FrontRow, ...]:
    """What is kept of a first page: nothing of one with too much on it, as only a whole one says what an unchanged page means. It
    travels with each request of its scan, and stays in Redis for each forum of a site.
    """
    if len(threads) > MOST_KEPT or sum(map(_size, threads)) > _MOST_CHARACTERS:
        return ()
    return tuple(
        FrontRow(one.id, one.token, None if one.sticky or order != "activity" else one.last_activity, _digest(one), one.url)
        for one in threads
    )


def vanished(before: Sequence[FrontRow], threads: Sequence[ListedThread], *, has_next: bool) -> list[FrontRow]:
    """The rows of `before` that should still be among `threads`, the first page now, and are not. None where the list shows no
    dates, or some that change with the time of day ("3 hours ago").
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
    """Those of `threads` that have another title than in `before`."""
    titles = {row.id: row.title for row in before}
    found = [one for one in threads if titles.get(one.id) and (title := _digest(one)) and title != titles[one.id]]
    return found if is_believable(len(found), len(before)) else []


def is_believable(number: int, rows: int) -> bool:
    """Whether so many of so many rows may have gone at once."""
    return number <= max(AT_LEAST, rows // 2)


def _size(thread: ListedThread) -> int:
    return len(thread.id) + len(thread.token) + len(thread.url or "")


def _digest(thread: ListedThread) -> str:
    title = thread.title or ""
    return title and hashlib.blake2b(title.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
