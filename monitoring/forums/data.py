"""Reads the stored data of the forum crawl for pages."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import func, select

from fleet_operations.overview.samples import Resolution
from forums.storage import Database
from forums.storage.read import read_sql
from forums.storage.read.event_reader import Event, EventLog
from forums.storage.read.search import Hit, newest
from forums.storage.schema.search_index import published
from forums.storage.schema.tables import board_months, comments, forums, posts, revisions, scans
from forums.storage.schema.tables import sites as stored_sites
from monitoring.pages.charts import StoredRows
from monitoring.pages.views import LONGEST_S
from redis_components.errors import TrawlError

POSTS_SHOWN = 10
EVENTS_SHOWN = 50
NEWS_SHOWN, MOST_NEWS = 12, 20
"""Posts that the start page shows: so many, and all of the last hour up to the second."""
COMMENTS_SHOWN = 100
MOST_OF_TREE = 20_000
"""Comments of a thread that are shown as a tree; a longer one is shown in order."""
LOG_S = 30 * 86_400.0  # of the event log for the charts; it is kept for TRAWL_EVENTS_DAYS


def stored_data(gone: threading.Event | None = None) -> AbstractContextManager[Database]:
    """Open the database. Raises NoData where there is none, StorageError where it cannot be read or its tables are older,
    TakesTooLong where reading takes more than LONGEST_S, or its client is `gone`.
    """
    return read_sql.stored_data(longest_s=LONGEST_S, gone=gone)


@dataclass(frozen=True, kw_only=True)
class Stored:
    """One site's data in the database."""

    posts: tuple[Any, ...] = ()  # published last
    scans: tuple[Any, ...] = ()  # the latest
    threads: Mapping[str, int] = field(default_factory=dict)  # stored, by board
    months: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # threads by month, by board
    claimed: Mapping[str, int] = field(default_factory=dict)  # by the site's own count, by board


def of_site(database: Database, site: str) -> Stored:
    """Read the latest posts and scans of a site, and how many threads are stored. Raises StorageError."""
    at = published(posts, database.engine.dialect.name)
    latest_posts = select(posts).where(posts.c.site == site).order_by(at.desc()).limit(POSTS_SHOWN)
    last_scans = select(scans).where(scans.c.site == site).order_by(scans.c.started_at.desc()).limit(POSTS_SHOWN)
    months = select(board_months).where(board_months.c.site == site).order_by(board_months.c.forum_id, board_months.c.month)
    claimed = select(forums.c.id, forums.c.threads).where(forums.c.site == site, forums.c.threads.is_not(None))
    by_board: defaultdict[str, dict[str, int]] = defaultdict(dict)
    with database.reading() as connection:
        for row in connection.execute(months):
            by_board[row.forum_id][row.month] = row.threads
        return Stored(
            months=by_board,
            posts=tuple(connection.execute(latest_posts)),
            scans=tuple(connection.execute(last_scans)),
            threads={board: sum(found.values()) for board, found in by_board.items()},
            claimed={forum: threads for forum, threads in connection.execute(claimed) if threads is not None},
        )


@dataclass(frozen=True, kw_only=True)
class StoredThread:
    """One page of a stored thread. The rows are those of the tables."""

    post: Any | None  # the opening post; None: only comments are stored yet
    comments: tuple[Any, ...]
    number: int  # comments that are stored, on all pages
    earlier: Mapping[tuple[str, str], Sequence[Any]]  # other texts that a row had, by `post` or `comment` and id
    depths: Mapping[str, int] = field(default_factory=dict)  # of comments below others, by id


def thread_of(database: Database, site: str, thread: str, page: int) -> StoredThread:
    """Read a thread's opening post and the comments of one page: each below the comment that it answers, where the site names
    it, else in their order. Raises StorageError.
    """
    c = comments.c
    here = (c.site == site, c.post_id == thread)
    order = (c.position.is_(None), c.position, c.created_at.is_(None), c.created_at, c.id)
    begin, depths = (page - 1) * COMMENTS_SHOWN, dict[str, int]()
    with database.reading() as connection:
        post = connection.execute(select(posts).where(posts.c.site == site, posts.c.id == thread)).first()
        number = connection.execute(select(func.count()).select_from(comments).where(*here)).scalar() or 0
        shown = select(comments).where(*here).order_by(*order)
        has_parents = connection.execute(select(c.id).where(*here, c.parent_id.is_not(None)).limit(1)).first()
        if has_parents and number <= MOST_OF_TREE:
            depths = tree_of(connection.execute(select(c.id, c.parent_id).where(*here).order_by(*order)).all())
            ids = list(depths)[begin : begin + COMMENTS_SHOWN]
            rows = {row.id: row for row in connection.execute(select(comments).where(*here, c.id.in_(ids)))}
            found = tuple(rows[one] for one in ids if one in rows)
        else:
            found = tuple(connection.execute(shown.limit(COMMENTS_SHOWN).offset(begin)))
        keys = {"post": [thread], "comment": [one.id for one in found]}
        texts = [
            row
            for kind, of in keys.items()
            for row in connection.execute(
                select(revisions).where(revisions.c.site == site, revisions.c.kind == kind, revisions.c.id.in_(of))
            )
        ]
    earlier: defaultdict[tuple[str, str], list[Any]] = defaultdict(list)
    for row in sorted(texts, key=lambda row: row.last_fetched_at):
        earlier[row.kind, row.id].append(row)
    return StoredThread(post=post, comments=found, number=number, earlier=earlier, depths=depths)


def tree_of(rows: Sequence[Any]) -> dict[str, int]:
    """Return the depth of each comment by id, in the order of the tree, from (id, parent) in the order of the thread. One whose
    parent is not there is at the top, and so is one of a circle.
    """
    below: defaultdict[str | None, list[str]] = defaultdict(list)
    ids = {one for one, _ in rows}
    for one, parent in rows:
        below[parent if parent in ids and parent != one else None].append(one)
    depths = dict[str, int]()
    for start in (*below[None], *(one for one, _ in rows)):
        waiting = [(start, 0)]
        while waiting:
            one, depth = waiting.pop()
            if one not in depths:
                depths[one] = depth
                waiting += [(answer, depth + 1) for answer in reversed(below[one])]
    return depths


def events_of(database: Database) -> list[Event]:
    """Return the last events, the newest first. Raises StorageError."""
    return EventLog(database).latest(EVENTS_SHOWN)


def news_of(database: Database, now: float) -> tuple[list[Hit], int]:
    """Return the posts and comments that were published last, and how many were in the hour before `now`. Raises StorageError."""
    found, of_hour = newest(database, now, limit=MOST_NEWS)
    return found[: max(NEWS_SHOWN, of_hour)], of_hour


def fleet_events_of(database: Database) -> list[Event]:
    """Return the last events of crawlers and breakers, and operators' acts, newest first. Raises StorageError."""
    return EventLog(database).latest(EVENTS_SHOWN, of_fleet=True)


class ForumRows(StoredRows):
    """Numbers of posts and comments that were stored in each minute and hour, by site and by the times in the event log, of which
    each transaction is read once. For any thread.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seq = 0
        self._sites = dict[str, datetime]()  # with stored data, and since when
        self._counts: dict[int, defaultdict[str | None, Counter[int]]] = {one.step_s: defaultdict(Counter) for one in Resolution}
        """By length of a step, site (None: of all) and number of the step."""

    def read(self) -> None:
        """Add what was stored since the last reading; without a database nothing."""
        with suppress(TrawlError), stored_data() as database:
            self.add(database)

    def add(self, database: Database) -> None:
        """Add what was stored since the last reading. Raises StorageError."""
        now = datetime.now(UTC)
        with self._lock:
            if EventLog(database).end().seq <= self._seq:  # another database, with a shorter log
                self._seq = 0
                for counts in self._counts.values():
                    counts.clear()
            self._forget_removed(database)
            for seq, at, sites in EventLog(database).new_rows(self._seq, now - timedelta(seconds=LOG_S)):
                for step_s, counts in self._counts.items():
                    step = int(at.timestamp()) // step_s
                    for site, number in sites.items():
                        counts[site][step] += number
                        counts[None][step] += number
                self._seq = seq
            for one in Resolution:
                oldest = int(now.timestamp()) // one.step_s - one.kept
                for steps in self._counts[one.step_s].values():
                    for step in [step for step in steps if step < oldest]:
                        del steps[step]

    def _forget_removed(self, database: Database) -> None:
        """Take away what was counted of sites that were removed since, also of one that is there again."""
        with database.reading() as connection:
            rows = connection.execute(select(stored_sites.c.name, stored_sites.c.first_seen_at))
            sites = {row.name: row.first_seen_at for row in rows}
        gone = {name for name, at in self._sites.items() if name not in sites or sites[name] > at}
        for counts in self._counts.values():
            for name in gone & counts.keys():
                counts[None].subtract(counts.pop(name))
        self._sites = sites

    def since(self, moment: float) -> int:
        """Return how many were stored since the minute of that moment, within the last day."""
        with self._lock:
            return sum(number for minute, number in self._counts[60][None].items() if minute >= moment // 60)

    def steps(self, step_s: int, now: float, site: str | None = None) -> list[tuple[float, float]]:
        """Return the end of each minute or hour since the first row, and how many were stored in it; the last one still runs."""
        with self._lock:
            found = self._counts[step_s].get(site, Counter[int]()).copy()
        last = int(now // step_s)
        return [(min(now, (step + 1.0) * step_s), float(found[step])) for step in range(min(found, default=last + 1), last + 1)]
