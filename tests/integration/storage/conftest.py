"""Databases for tests: each test that asks for `database` or `database_url` runs on SQLite, PostgreSQL and MariaDB."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import make_url

from forums.storage import Database
from tests.support.mariadb_server import MISSING, MariadbServer, server_program
from tests.support.postgres_server import PostgresServer, binaries
from tests.support.prepared_databases import PreparedDatabases

PREPARED = {"postgresql": "prepared_postgres", "mysql": "prepared_mariadb"}


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """The session's own PostgreSQL; whoever stops it starts it again. Skips where PostgreSQL is not installed."""
    found = binaries()
    if found is None:
        pytest.skip("PostgreSQL is not installed: no initdb in /usr/lib/postgresql/*/bin or on PATH (apt-get install postgresql)")
    with PostgresServer(found) as server:
        yield server


@pytest.fixture(scope="session")
def mariadb_server() -> Iterator[MariadbServer]:
    """The session's own MariaDB (or MySQL); whoever stops it starts it again. Skips where neither is installed."""
    found = server_program()
    if found is None:
        pytest.skip(MISSING)
    with MariadbServer(found) as server:
        yield server


@pytest.fixture(scope="session")
def prepared_postgres(postgres_server: PostgresServer) -> Iterator[PreparedDatabases]:
    with closing(PreparedDatabases(postgres_server.new_schema)) as prepared:
        yield prepared


@pytest.fixture(scope="session")
def prepared_mariadb(mariadb_server: MariadbServer) -> Iterator[PreparedDatabases]:
    with closing(PreparedDatabases(mariadb_server.new_database)) as prepared:
        yield prepared


@pytest.fixture(params=["sqlite", "postgresql", "mysql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """URL of an empty database of each kind, which has all tables where the test asks for `database`, too."""
    needs_tables = "database" in request.fixturenames
    if request.param == "sqlite":
        path = tmp_path / "trawl.sqlite"
        if needs_tables:
            shutil.copy(request.getfixturevalue("empty_sqlite"), path)
        yield f"sqlite:///{path}"
    elif needs_tables:
        prepared: PreparedDatabases = request.getfixturevalue(PREPARED[request.param])
        url = prepared.take()
        yield url
        prepared.give_back(url)
    elif request.param == "mysql":
        mariadb: MariadbServer = request.getfixturevalue("mariadb_server")
        yield mariadb.new_database()
    else:
        postgres: PostgresServer = request.getfixturevalue("postgres_server")
        yield postgres.new_schema()


@pytest.fixture
def database(request: pytest.FixtureRequest, database_url: str) -> Iterator[Database]:
    """An open, empty database of each kind."""
    if prepared := PREPARED.get(make_url(database_url).get_backend_name()):
        yield request.getfixturevalue(prepared).database(database_url)
    else:
        with Database.from_url(database_url) as opened:
            yield opened
