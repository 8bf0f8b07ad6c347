"""Reader of the event log: events by position, each with the text of its row in that version."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

import msgspec
from sqlalchemy import Connection, Select, bindparam, delete, func, select

from forums.storage.database import Database
from forums.storage.engine import keyed, rows_by_key
from forums.storage.schema.tables import comments, event_dead_letters, events, posts, revisions
from forums.storage.write.changes import BEGINNING, Change, ChangeKind, Position, changes_of, is_of_fleet
from redis_components.errors import ConfigError

MOST_TRANSACTIONS = 100_000  # kept, of any age: about 10 GB at the very most, 100 MB where a transaction has ten changes
MOST_LOOKED_AT = 2_000  # transactions in which the last events are looked for
_AT_ONCE, _AT_FIRST = 100, 10  # transactions read in one query; for the last events, which ten large ones have

_Key = tuple[str, str, str]  # row, site, id
_Found = tuple[Position, datetime, Change]


class Event(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One version of a post or comment, or an event of the fleet (`changes.py`), as receivers get it. Times are of the
    site's clock, except `stored_at`.
    """

    id: str  # `<site>/<post or comment>/<its id>@<version>`: stable for the same event
    position: str  # in the log
    type: str  # new, edited, corrected, deleted, restored or moved
    row: str  # post or comment; for fleet events crawler, breaker or fleet
    site: str  # "" if it belongs to no single site
    forum: str = ""
    thread: str = ""  # of a post or comment
    item: str  # id of the post or comment on its site
    version: int
    stored_at: datetime
    title: str | None = None  # of the thread
    text: str | None = None  # of this version; None: not stored any more, or never
    author: str | None = None
    url: str | None = None
    created_at: datetime | None = None
    deleted_at: datetime | None = None
    rules: list[str] = []  # matching rules of the rules file
    undecided: list[str] = []  # rules whose regular expressions took too long for this text

    @property
    def at(self) -> Position:
        """Its position."""
        return Position.parse(self.position)


class EventLog:
    """The events of an open database. Every failure is a StorageError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def end(self) -> Position:
        """Return the position after the last event."""
        found = self._number(select(func.max(events.c.seq)))
        return BEGINNING if found is None else Position(found + 1, -1)

    def begin(self) -> Position:
        """Return the position before the oldest event that is kept."""
        found = self._number(select(func.min(events.c.seq)))
        return BEGINNING if found is None else Position(found, -1)

    def since(self, moment: datetime) -> Position:
        """Return the position before the first event stored at `moment` or later. Raises ConfigError without a time zone."""
        if moment.tzinfo is None:
            raise ConfigError(f"{moment.isoformat()} has no time zone; write it as {moment.isoformat()}Z for UTC")
        found = self._number(select(func.min(events.c.seq)).where(events.c.stored_at >= moment))
        return self.end() if found is None else Position(found, -1)

    def _number(self, query: Select[Any]) -> int | None:
        ((found,),) = self._database.rows(query)
        return None if found is None else int(found)

    def waiting(self, after: Position) -> int:
        """Return the number of events of posts and comments after a position."""
        with self._database.reading() as connection:
            later = select(func.coalesce(func.sum(events.c.number), 0)).where(events.c.seq > after.seq)
            same = connection.execute(select(events.c.number).where(events.c.seq == after.seq)).scalar() or 0
            return int(connection.execute(later).scalar() or 0) + max(0, same - (after.place + 1))

    def read(self, after: Position, most: int = 1000, *, fleet: bool = False) -> list[Event]:
        """Return the events after a position, oldest first, `most` at most; fewer only at the end of the log. `fleet`: include
        the events of the fleet.
        """
        found, seq = list[_Found](), after.seq
        with self._database.reading() as connection:
            while len(found) < most:
                rows = connection.execute(_SELECT.where(events.c.seq >= seq).limit(_AT_ONCE)).all()
                later = _changes_in(rows, lambda at, one: at > after and (fleet or not is_of_fleet(one)))
                found += islice(later, most - len(found))
                if len(rows) < _AT_ONCE:
                    break
                seq = rows[-1][0] + 1
            return _with_texts(connection, found)

    def latest(self, most: int, *, of_fleet: bool = False) -> list[Event]:
        """Return the last events of posts and comments, or of the fleet, the newest first, of the last MOST_LOOKED_AT
        transactions.
        """
        found = list[_Found]()
        with self._database.reading() as connection:
            bound = (connection.execute(select(func.max(events.c.seq))).scalar() or 0) - MOST_LOOKED_AT
            wanted = events.c.number == 0 if of_fleet else events.c.number > 0  # the changes of others are not even read
            query = _COLUMNS.where(events.c.seq > bound, wanted).order_by(events.c.seq.desc()).limit(_AT_ONCE)
            rows = connection.execute(query.limit(_AT_FIRST)).all()
            while rows and len(found) < most:
                of_rows = _changes_in(rows, lambda _, one: is_of_fleet(one) == of_fleet, newest_first=True)
                found += islice(of_rows, most - len(found))
                rows = connection.execute(query.where(events.c.seq < rows[-1][0])).all() if len(found) < most else []
            return _with_texts(connection, found)

    def new_rows(self, after: int, since: datetime) -> Iterator[tuple[int, datetime, Counter[str]]]:
        """Yield number and time of each transaction after a number and a time, and how many rows of each site are new in it."""
        query = _SELECT.where(events.c.seq > after, events.c.stored_at >= since)
        for seq, stored_at, text in self._database.stream(query):
            new = (one for one in changes_of(text) if one.kind == ChangeKind.NEW and not is_of_fleet(one))
            yield seq, stored_at, Counter(one.site for one in new)

    def at(self, positions: Iterable[Position]) -> list[Event]:
        """Return the events at these positions, as far as they are kept, in order."""
        wanted = set(positions)
        with self._database.reading() as connection:
            rows = connection.execute(_SELECT.where(events.c.seq.in_(sorted({at.seq for at in wanted})))).all()
            return _with_texts(connection, list(_changes_in(rows, lambda at, _: at in wanted)))

    def prune(self, days: float, now: datetime | None = None) -> int:
        """Drop the transactions older than `days`, and the oldest above MOST_TRANSACTIONS; return their number."""
        bound = (now or datetime.now(UTC)) - timedelta(days=days)
        newest = func.coalesce(func.max(events.c.seq), 0) - MOST_TRANSACTIONS
        with self._database.reading() as connection:
            old = connection.execute(select(func.max(events.c.seq)).where(events.c.stored_at < bound)).scalar() or 0
            old = max(old, connection.execute(select(newest)).scalar() or 0)
            if connection.execute(select(events.c.seq).where(events.c.seq <= old).limit(1)).scalar() is None:
                return 0  # nearly always: do not lock out the writers
        with self._database.writing() as connection:
            connection.execute(delete(event_dead_letters).where(event_dead_letters.c.seq <= old))
            return connection.execute(delete(events).where(events.c.seq <= old)).rowcount


_COLUMNS = select(events.c.seq, events.c.stored_at, events.c.changes)
_SELECT = _COLUMNS.order_by(events.c.seq)
_OF_KIND = {
    kind: select(*[table.c[name] for name in ("id", "content_hash", "body", "author", "url", "created_at", "deleted_at")]).where(
        keyed(table.c.id)
    )
    for kind, table in (("post", posts), ("comment", comments))
}
_THREADS = select(posts.c.id, posts.c.forum_id, posts.c.title).where(keyed(posts.c.id))
_REVISIONS = select(*[revisions.c[name] for name in ("id", "content_hash", "title", "body", "author")]).where(
    keyed(revisions.c.id), revisions.c.kind == bindparam("kind")
)


def _changes_in(rows: Iterable[Any], fits: Callable[[Position, Change], bool], *, newest_first: bool = False) -> Iterator[_Found]:
    """Yield the changes of these transactions that fit, without those of removed sites."""
    for seq, stored_at, text in rows:
        changes = list(enumerate(changes_of(text)))
        for place, change in reversed(changes) if newest_first else changes:
            if change.kind and fits(position := Position(seq, place), change):
                yield position, stored_at, change


def _with_texts(connection: Connection, found: Sequence[_Found]) -> list[Event]:
    changes = [change for _, _, change in found if not is_of_fleet(change)]
    rows, of_threads = _rows(connection, changes), ((change.site, change.thread) for change in changes)
    threads = {(site, id_): (forum, title) for site, (id_, forum, title) in rows_by_key(connection, _THREADS, of_threads)}
    texts = _earlier_texts(connection, changes, rows)
    made = []
    for position, stored_at, change in found:
        if is_of_fleet(change):
            made.append(_of_fleet(position, stored_at, change))
            continue
        key = change.row, change.site, change.id
        row, (forum, title) = rows.get(key), threads.get((change.site, change.thread), ("", None))
        event = Event(
            id=f"{change.site}/{change.row}/{change.id}@{change.version}",
            position=str(position),
            type=change.kind,
            row=change.row,
            site=change.site,
            forum=change.forum or forum,
            thread=change.thread,
            item=change.id,
            version=change.version,
            stored_at=stored_at,
            title=title,
        )
        if row is not None:
            event.url, event.created_at, event.author = row.url, row.created_at, row.author
            event.deleted_at = row.deleted_at if change.kind == "deleted" else None
            if change.hash and row.content_hash == change.hash:
                event.text = row.body
            elif earlier := texts.get((*key, change.hash)):
                event.text, event.author = earlier.body, earlier.author
                event.title = earlier.title if change.row == "post" else title
        made.append(event)
    return made


def _of_fleet(position: Position, stored_at: datetime, change: Change) -> Event:
    return Event(
        id="/".join(filter(None, (change.site, change.row, f"{change.id}@{change.version}"))),
        position=str(position),
        type=change.kind,
        row=change.row,
        site=change.site,
        forum=change.forum,
        item=change.id,
        version=change.version,
        stored_at=stored_at,
        text=change.sentence,
        created_at=datetime.fromtimestamp(change.at, UTC),
    )


def _rows(connection: Connection, changes: Iterable[Change]) -> dict[_Key, Any]:
    keys: dict[str, list[tuple[str, str]]] = {kind: [] for kind in _OF_KIND}
    for change in changes:
        keys[change.row].append((change.site, change.id))
    found = {}
    for kind, query in _OF_KIND.items():
        found.update({(kind, site, row.id): row for site, row in rows_by_key(connection, query, keys[kind])})
    return found


def _earlier_texts(connection: Connection, changes: Iterable[Change], rows: dict[_Key, Any]) -> dict[tuple[str, ...], Any]:
    """Return the earlier texts of rows that have another text now, by row, site, id and hash."""
    changed = [
        key for one in changes if one.hash and (key := (one.row, one.site, one.id)) in rows and rows[key].content_hash != one.hash
    ]
    return {
        (kind, site, row.id, row.content_hash): row
        for kind in _OF_KIND
        for site, row in rows_by_key(connection, _REVISIONS, [key[1:] for key in changed if key[0] == kind], kind=kind)
    }
