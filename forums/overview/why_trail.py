"""History of a page in the database: the scan that showed it, its earlier texts, its place in a list."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from sqlalchemy import Select, func, select

from forums.storage import Database, posts, revisions, scans

from .why_place import instant

MOST_REVISIONS = 10
_NEIGHBOURS = 30  # ids to search on both sides of a thread's number
_NUMBERED = re.compile(r"(.*?)(\d{1,15})(\D*)")


def first_shown(database: Database, site: str, thread: str) -> str:
    """Describe when a thread was seen first, and by which scan; "" if it is not stored."""
    known = _rows(database, select(posts.c.forum_id, posts.c.first_seen_at).where(posts.c.site == site, posts.c.id == thread))
    if not known:
        return ""
    board, seen = known[0]
    of_board = (scans.c.site == site, scans.c.forum_id == board, scans.c.started_at <= seen)
    query = select(scans.c.started_at, scans.c.mode, scans.c.pages).where(*of_board).order_by(scans.c.started_at.desc()).limit(1)
    start = f"it was stored first from a page that was fetched {instant(seen)}"
    for started_at, mode, pages in _rows(database, query):
        return f"{start}; the last scan of board {site}/{board} before that ({mode}, {pages:,} pages) began {instant(started_at)}"
    return f"{start}; no scan of board {site}/{board} is kept from before"


def earlier_texts(database: Database, site: str, ids: dict[str, list[str]]) -> Iterator[str]:
    """Yield earlier texts of its rows (`post` or `comment` -> ids), the latest first."""
    for kind, names in ids.items():
        c = revisions.c
        query = select(c.id, c.first_fetched_at, c.last_fetched_at, func.substr(c.body, 1, 60))
        query = query.where(c.site == site, c.kind == kind, c.id.in_(names)).order_by(c.last_fetched_at.desc())
        for id_, first, last, text in _rows(database, query.limit(MOST_REVISIONS)):
            yield f"{kind} {id_} had another text from {instant(first)} to {instant(last)}: {' '.join(text.split())}"


def place_in_list(database: Database, site: str, thread: str) -> str:
    """Describe on which page of which board's list a thread of this number should be, by threads with numbers near it; "" if none
    is known.
    """
    numbered = _NUMBERED.fullmatch(thread)
    if numbered is None:
        return ""
    before, number, after = numbered[1], int(numbered[2]), numbered[3]
    near = [f"{before}{number + step}{after}" for step in range(-_NEIGHBOURS, _NEIGHBOURS + 1)]
    c = posts.c
    found = _rows(database, select(c.id, c.forum_id, c.last_reply_at, c.created_at).where(c.site == site, c.id.in_(near)))
    if not found:
        newest = _rows(database, select(c.id).where(c.site == site).order_by(c.first_seen_at.desc()).limit(1))
        return f"no thread with a number near it is known; the newest one is {newest[0][0]}" if newest else ""
    id_, board, replied, created = min(found, key=lambda row: abs(_number(row[0]) - number))
    activity: datetime | None = replied or created
    if activity is None:
        return f"thread {id_}, with a number near it, is of board {site}/{board}"
    later = select(func.count()).select_from(posts).where(c.site == site, c.forum_id == board, c.last_reply_at > activity)
    page = 1 + int(_rows(database, later)[0][0]) // _on_a_page(database, site, board)
    return f"thread {id_}, with a number near it, stands on about page {page:,} of the list of board {site}/{board}"


def _number(id_: str) -> int:
    numbered = _NUMBERED.fullmatch(id_)
    return int(numbered[2]) if numbered else 0


def _on_a_page(database: Database, site: str, board: str) -> int:
    """Return the number of threads on a page of its list, from its last scan."""
    s = scans.c
    last = select(s.threads, s.pages).where(s.site == site, s.forum_id == board, s.pages > 0, s.threads > 0)
    for threads, pages in _rows(database, last.order_by(s.started_at.desc()).limit(1)):
        return max(1, int(threads) // int(pages))
    return 20


def _rows(database: Database, query: Select[*tuple[Any, ...]]) -> list[Any]:
    with database.translated(), database.engine.connect() as connection:
        return list(connection.execute(query).all())
