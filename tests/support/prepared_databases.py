"""Databases with all tables, each used by one test after the other: making forty tables takes a server half a second, and each
new connection to them as long as a test.

A database whose tables, columns, indexes or rules a test has changed is not used again, nor one in which a lock is held.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from sqlalchemy import Connection, Engine, create_engine, text
from sqlalchemy.exc import SQLAlchemyError

from forums.storage import Database, StorageError

HERE = {"postgresql": "current_schema()", "mysql": "database()"}
TYPE = {"postgresql": "data_type", "mysql": "column_type"}
INDEXES = {
    "postgresql": "SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = {here}",
    "mysql": "SELECT table_name, index_name, column_name FROM information_schema.statistics WHERE table_schema = {here}",
}
COLUMNS = "SELECT table_name, column_name, {type} FROM information_schema.columns WHERE table_schema = {here}"
CONSTRAINTS = "SELECT table_name, constraint_name FROM information_schema.table_constraints WHERE table_schema = {here}"
TRIGGERS = "SELECT trigger_name, event_manipulation FROM information_schema.triggers WHERE trigger_schema = {here}"
TABLES = "SELECT table_name FROM information_schema.tables WHERE table_schema = {here} AND table_type = 'BASE TABLE'"
USED = {  # counters of rows that were given a number
    "postgresql": "SELECT sequencename FROM pg_sequences WHERE schemaname = {here} AND last_value IS NOT NULL",
    "mysql": "SELECT table_name FROM information_schema.tables WHERE table_schema = {here} AND auto_increment > 1",
}
PATIENCE = {
    "postgresql": ["SET LOCAL lock_timeout = '2s'"],
    "mysql": ["SET SESSION lock_wait_timeout = 2, innodb_lock_wait_timeout = 2, foreign_key_checks = 0"],
}


class _Made(NamedTuple):
    """What a database is before its first test, and what stays connected to it between them."""

    database: Database
    """Of the tests. It has compiled their statements, too."""
    engine: Engine
    """Of what is done between them."""
    shape: frozenset[tuple[Any, ...]]
    rows: dict[str, list[dict[str, Any]]]

    def close(self) -> None:
        self.database.close()
        self.engine.dispose()


class PreparedDatabases:
    """Those of one server; `new` makes an empty one and returns its URL."""

    def __init__(self, new: Callable[[], str]) -> None:
        self._new = new
        self._free: list[str] = []
        self._made: dict[str, _Made] = {}

    def take(self) -> str:
        """URL of a database with all tables, as `Database.open` makes them."""
        if self._free:
            return self._free.pop()
        url = self._new()
        database = Database.from_url(url).open()
        engine = create_engine(url, pool_size=1, pool_pre_ping=True)  # a test may have restarted the server
        with _connected(engine) as connection:
            rows = {table: _rows(connection, table) for table in _filled(connection)}
            self._made[url] = _Made(database, engine, _shape(connection), rows)
        return url

    def database(self, url: str) -> Database:
        """One that was taken, open: as each test gets it, although its engine is that of the test before."""
        with suppress(StorageError):  # connections that a test has cut
            return Database(self._made[url].database.engine).open()
        return Database(self._made[url].database.engine).open()

    def give_back(self, url: str) -> None:
        """Empty it for the next test, if it can be as it was."""
        made = self._made[url]
        try:
            with _connected(made.engine) as connection:
                is_as_made = _empty(connection, made)
        except SQLAlchemyError:  # a lock that is held, a server that a test has stopped
            is_as_made = False
        if is_as_made:
            self._free.append(url)
        else:
            made.close()

    def close(self) -> None:
        for made in self._made.values():
            made.close()


@contextmanager
def _connected(engine: Engine) -> Iterator[Connection]:
    with engine.begin() as connection:
        for statement in PATIENCE[connection.dialect.name]:
            connection.execute(text(statement))
        yield connection


def _told(connection: Connection, query: str) -> list[Any]:
    """The rows of a query of the server's own tables."""
    dialect = connection.dialect.name
    return list(connection.execute(text(query.format(here=HERE[dialect], type=TYPE[dialect]))))


def _shape(connection: Connection) -> frozenset[tuple[Any, ...]]:
    queries = (COLUMNS, CONSTRAINTS, TRIGGERS, INDEXES[connection.dialect.name])
    return frozenset(tuple(row) for query in queries for row in _told(connection, query))


def _filled(connection: Connection) -> list[str]:
    parts = (f"(SELECT '{table}' AS name FROM {table} LIMIT 1)" for (table,) in _told(connection, TABLES))
    return [row[0] for row in connection.execute(text(" UNION ALL ".join(parts)))]


def _rows(connection: Connection, table: str) -> list[dict[str, Any]]:
    return sorted((dict(row) for row in connection.execute(text(f"SELECT * FROM {table}")).mappings()), key=repr)


def _empty(connection: Connection, made: _Made) -> bool:
    """Whether it is now as it was made."""
    if _shape(connection) != made.shape:
        return False
    filled = [table for table in _filled(connection) if table not in made.rows]
    if connection.dialect.name == "postgresql":
        if filled:
            connection.execute(text(f"TRUNCATE {', '.join(filled)} CASCADE"))
        for (name,) in _told(connection, USED["postgresql"]):
            connection.execute(text(f"SELECT setval('{name}', 1, false)"))
    else:
        for table in filled:
            connection.execute(text(f"DELETE FROM {table}"))
        for (name,) in _told(connection, USED["mysql"]):
            connection.execute(text(f"ALTER TABLE {name} AUTO_INCREMENT = 1"))
    _put_back(connection, made)
    return True


def _put_back(connection: Connection, made: _Made) -> None:
    """Give the tables that were not empty their rows of then: each write counts on in one of `event_outputs`."""
    for table, rows in made.rows.items():
        if _rows(connection, table) != rows:
            connection.execute(text(f"DELETE FROM {table}"))
            columns = list(rows[0])
            values = ", ".join(f":{column}" for column in columns)
            connection.execute(text(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({values})"), rows)
