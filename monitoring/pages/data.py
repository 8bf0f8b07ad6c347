"""Reads the data of single pages beyond the overview: the database, the log of a crawler, dead letters, schedule and jobs."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any

import redis
from sqlalchemy import func, select

from forums.overview import Overview
from forums.storage import Database
from forums.storage.engine import sqlite_file
from forums.storage.history import Wanted
from forums.storage.read.event_reader import Event, EventLog
from forums.storage.read.read_sql import limited
from forums.storage.schema.tables import forums, gaps, posts, scans
from forums.storage.write.event_log import Position
from forums.writer.run_history import latest
from redis_components.admin.crawl_records import CrawlRecords
from redis_components.admin.dead_letters import DeadEntry, newest
from redis_components.errors import TrawlError
from workers.logs.lines import LogLine, last_lines
from workers.logs.slot_log import slot_logs

LONGEST_S = 10.0  # that a page may keep the database at work
LOG_LINES = 200
LINE_CHARACTERS = 2000
RUNS_SHOWN = 20
POSTS_SHOWN = 10
DEAD_SHOWN = 50
PAYLOAD_BYTES = 4000
EVENTS_SHOWN = 50


class NoData(TrawlError):
    """Raised where there is no database yet."""


@contextmanager
def stored_data(gone: threading.Event | None = None) -> Iterator[Database]:
    """Open the database. Raises NoData where there is none, StorageError where it cannot be read or its tables are older,
    TakesTooLong where reading takes more than LONGEST_S, or its client is `gone`.
    """
    database = Database.from_url()
    file = sqlite_file(database.engine.url)
    if file and not file.exists():
        raise NoData(f"database {file} does not exist yet")
    with closing(database), limited(database.engine, LONGEST_S, gone):
        yield database.open(upgrade=False)


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


def runs_of(client: redis.Redis, database: Database | None, spider: str, number: int | None) -> list[Any]:
    """Return the crawler processes of a service, or of a slot, the youngest first."""
    return latest(database, client, Wanted(spider=spider, number=number), RUNS_SHOWN)


def log_of(spider: str, number: int | None) -> list[LogLine] | None:
    """Return the last lines of a crawler's log; None where it is not on this machine."""
    log = slot_logs().get((spider, number)) if number is not None else None
    try:
        return last_lines(log, LOG_LINES) if log else None
    except OSError:
        return None


def dead_of(client: redis.Redis, view: Overview, service: str | None = None) -> list[tuple[str, DeadEntry]]:
    """Return the requests and start tasks that were given up, with their service, newest first."""
    names = [one.name for one in view.services if service in (None, one.name) and one.crawl.dead]
    crawls = CrawlRecords(client).keys_of_all(names)
    found = [(name, entry) for name, keys in crawls.items() for entry in newest(client, keys, DEAD_SHOWN)[0]]
    return sorted(found, key=lambda one: one[1].at_s, reverse=True)[:DEAD_SHOWN]


def payload_of(entry: DeadEntry) -> str:
    """Return the request as it stands in Redis, for people; cut where it is long."""
    shown = entry.payload[:PAYLOAD_BYTES].decode("utf-8", "backslashreplace")
    return f"{shown}… ({len(entry.payload):,} bytes)" if len(entry.payload) > PAYLOAD_BYTES else shown
