"""Databases for tests: each test that asks for `database` or `database_url` runs on SQLite, PostgreSQL and MariaDB."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import make_url

from forums.storage import Database
from forums.storage.engine import sqlite_file
from tests.support.mariadb_server import MISSING, MariadbServer, server_program
from tests.support.postgres_server import PostgresServer, binaries


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


@pytest.fixture(params=["sqlite", "postgresql", "mysql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """URL of an empty database of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'trawl.sqlite'}"
    if request.param == "mysql":
        mariadb: MariadbServer = request.getfixturevalue("mariadb_server")
        return mariadb.new_database()
    server: PostgresServer = request.getfixturevalue("postgres_server")
    return server.new_schema()


@pytest.fixture(scope="session")
def empty_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite file with all tables: copying it is cheaper than running the migrations for each test."""
    file = tmp_path_factory.mktemp("empty") / "trawl.sqlite"
    Database.from_url(f"sqlite:///{file}").open().close()
    return file


@pytest.fixture
def database(database_url: str, empty_sqlite: Path) -> Iterator[Database]:
    """An open, empty database of each kind."""
    if path := sqlite_file(make_url(database_url)):
        shutil.copy(empty_sqlite, path)
    with Database.from_url(database_url) as opened:
        yield opened
