"""Removal of all rows of a site, in short transactions: the fleet goes on to store the other sites meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
from sqlalchemy import ColumnElement, Connection, Table, and_, delete, func, inspect, select, update
from sqlalchemy import text as sql

from forums.storage.database import Database
from forums.storage.schema import search_index
from forums.storage.schema.tables import (
    board_months,
    checks,
    comments,
    event_dead_letters,
    events,
    forums,
    posts,
    revisions,
    scans,
    sites,
)

from .changes import changes_of, is_of_fleet, lock_writers

_TABLES: tuple[Table, ...] = (posts, comments, revisions, checks, scans, board_months, forums)
_AT_ONCE = 5_000  # rows
_EVENTS_AT_ONCE = 100  # transactions of the log


def rows_of_site(database: Database, site: str) -> dict[str, int]:
    """Return the number of rows of a site by table; tables without one are left out. Raises StorageError."""
    with database.reading() as connection:
        numbers = {
            table.name: connection.execute(select(func.count()).where(table.c.site == site)).scalar() or 0 for table in _TABLES
        }
        numbers["events"] = sum(_of_site(text, site) for _, text in _transactions(connection, site))
    return {name: number for name, number in numbers.items() if number}


def remove_rows(database: Database, site: str) -> dict[str, int]:
    """Delete all rows of a site, its words in the search's index and its events; return the numbers by table.

    Cut off in between, the next call goes on. Raises StorageError.
    """
    gone = rows_of_site(database, site)
    for table in _TABLES:
        while _delete_some(database, table, site):
            pass
    with _writing(database) as connection:
        search_index.forget(connection, site)
        connection.execute(delete(sites).where(sites.c.name == site))
        if inspect(connection).has_table("gaps"):  # made by version 4
            connection.execute(sql("DELETE FROM gaps WHERE site = :site"), {"site": site})
    _forget_events(database, site)
    return gone


def _delete_some(database: Database, table: Table, site: str) -> bool:
    """Delete some rows; return True if there may be more."""
    of_site: ColumnElement[bool] = table.c.site == site
    by = table.c.id if "id" in table.c else list(table.primary_key.columns)[1]
    with _writing(database) as connection:
        bound = connection.execute(select(by).where(of_site).order_by(by).offset(_AT_ONCE).limit(1)).scalar()
        if bound is None:
            connection.execute(delete(table).where(of_site))
            return False
        return connection.execute(delete(table).where(of_site, by <= bound)).rowcount > 0


def _forget_events(database: Database, site: str) -> None:
    """Blank the changes of the site in the log. The others keep their places, which receivers have stored."""
    with database.reading() as connection:
        found = [seq for seq, _ in _transactions(connection, site)]
    for start in range(0, len(found), _EVENTS_AT_ONCE):
        with _writing(database) as connection:
            query = select(events.c.seq, events.c.changes).where(events.c.seq.in_(found[start : start + _EVENTS_AT_ONCE]))
            for seq, text in connection.execute(query).all():
                _blank(connection, seq, text, site)


def _blank(connection: Connection, seq: int, text: str, site: str) -> None:
    changes = changes_of(text)
    places = [place for place, one in enumerate(changes) if one.site == site]
    letters = event_dead_letters.c
    connection.execute(delete(event_dead_letters).where(and_(letters.seq == seq, letters.place.in_(places))))
    if len(places) == len(changes):
        connection.execute(delete(events).where(events.c.seq == seq))
        return
    for place in places:
        changes[place] = changes[place].blank()
    number = sum(bool(one.kind) and not is_of_fleet(one) for one in changes)
    written = msgspec.json.encode(changes).decode()
    connection.execute(update(events).where(events.c.seq == seq).values(number=number, changes=written))


def _transactions(connection: Connection, site: str) -> Iterator[tuple[int, str]]:
    """Yield number and changes of each transaction with a change of the site."""
    query = select(events.c.seq, events.c.changes).where(events.c.changes.contains(f'"{site}"', autoescape=True))
    for seq, text in connection.execution_options(yield_per=_EVENTS_AT_ONCE).execute(query):
        if _of_site(text, site):
            yield seq, text


def _of_site(text: str, site: str) -> int:
    return sum(one.site == site for one in changes_of(text))


@contextmanager
def _writing(database: Database) -> Iterator[Connection]:
    with database.writing() as connection:
        lock_writers(connection)
        yield connection
