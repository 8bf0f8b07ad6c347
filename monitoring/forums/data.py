"""Reads the stored data of the forum crawl for pages."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import func, select

from forums.storage import Database, existing
from forums.storage.read.event_reader import Event, EventLog
from forums.storage.schema.tables import forums, gaps, posts, scans
from forums.storage.write.event_log import Position

LONGEST_S = 10.0  # that a page may keep the database at work
POSTS_SHOWN = 10
EVENTS_SHOWN = 50


def stored_data(gone: threading.Event | None = None) -> AbstractContextManager[Database]:
    """Open the database. Raises NoData where there is none, StorageError where it cannot be read or its tables are older,
    TakesTooLong where reading takes more than LONGEST_S, or its client is `gone`.
    """
    return existing.stored_data(longest_s=LONGEST_S, gone=gone)


@dataclass(frozen=True, kw_only=True)
class Stored:
    """One site's data in the database."""

    posts: tuple[Any, ...] = ()  # the latest that were seen first
    gaps: tuple[Any, ...] = ()  # open ones first
    scans: tuple[Any, ...] = ()  # the latest
    threads: Mapping[str, int] = field(default_factory=dict)  # stored, by board
    claimed: Mapping[str, int] = field(default_factory=dict)  # by the site's own count, by board


def of_site(database: Database, site: str) -> Stored:
    """Read the latest posts and scans of a site, its gaps, and how many threads are stored. Raises StorageError."""
    latest_posts = select(posts).where(posts.c.site == site).order_by(posts.c.first_seen_at.desc(), posts.c.id).limit(POSTS_SHOWN)
    open_first = select(gaps).where(gaps.c.site == site).order_by(gaps.c.closed_at.is_not(None), gaps.c.opened_at.desc())
    last_scans = select(scans).where(scans.c.site == site).order_by(scans.c.started_at.desc()).limit(POSTS_SHOWN)
    number = select(posts.c.forum_id, func.count()).where(posts.c.site == site)
    claimed = select(forums.c.id, forums.c.threads).where(forums.c.site == site, forums.c.threads.is_not(None))
    with database.translated(), database.engine.connect() as connection:
        return Stored(
            posts=tuple(connection.execute(latest_posts)),
            gaps=tuple(connection.execute(open_first.limit(POSTS_SHOWN))),
            scans=tuple(connection.execute(last_scans)),
            threads=dict(connection.execute(number.group_by(posts.c.forum_id)).all()),
            claimed={forum: threads for forum, threads in connection.execute(claimed) if threads is not None},
        )


def events_of(database: Database, most: int = EVENTS_SHOWN) -> list[Event]:
    """Return the last events, the newest first. Raises StorageError."""
    log = EventLog(database)
    end = log.end()
    step, found = most, list[Event]()
    while len(found) < most:  # a transaction has one event or thousands: go back until there are enough
        first = max(0, end.seq - step)
        found = log.read(Position(first, -1), 20 * most)
        if not first:
            break
        step *= 4
    return found[::-1][:most]


def fleet_events_of(database: Database) -> list[Event]:
    """Return the last events of crawlers, breakers, gaps and boards, and operators' acts, newest first. Raises StorageError."""
    return EventLog(database).latest_of_fleet(EVENTS_SHOWN)
