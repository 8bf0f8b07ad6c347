"""Errors of the database: one line, no password, a way to mend it, and rows told from outages."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import pymysql
import pytest
from sqlalchemy import Connection, create_engine, make_url
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.pool import StaticPool

from forums.storage import Database, StorageError
from forums.storage.database import check_url, default_url
from forums.storage.errors import masked, row_refusal, storage_error
from redis_components.errors import ConfigError

SECRET = "s3cr3t-w0rd"


@pytest.fixture
def connection() -> Iterator[Connection]:
    engine = create_engine("sqlite://", poolclass=StaticPool)
    with engine.connect() as connection:
        connection.exec_driver_sql("CREATE TABLE t (a INTEGER CHECK (a < 5), b TEXT NOT NULL, c INTEGER UNIQUE)")
        yield connection
    engine.dispose()


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///", "sqlite:///:memory:"])
def test_a_database_in_memory_is_refused_because_processes_cannot_share_it(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAWL_DATABASE_URL", url)
    with pytest.raises(ConfigError, match="it is in memory"):
        check_url()


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql+psycopg://ada:{SECRET}@host/db",
        f"postgresql+psycopg:///db?host=/run&user=ada&password={SECRET}",
        f"postgresql+psycopg://ada:{SECRET}@host:port/db",
        f"mysql://ada:{SECRET}@host/db",
        f"mysql+mysqldb://ada:{SECRET}@host/db",
        f"oracle://ada:{SECRET}@host/db",
        f"nonsense://ada:{SECRET}@@host/db",
        f"ada:{SECRET}",
    ],
)
def test_a_password_is_never_shown(url: str) -> None:
    try:
        shown = Database.from_url(url).name
    except StorageError as error:
        shown = str(error)
    assert SECRET not in shown


def test_a_password_that_the_driver_repeats_is_masked_too() -> None:
    url = make_url(f"postgresql+psycopg://ada:{SECRET}@host/db")
    assert str(storage_error(url, OSError(f"bad dsn password={SECRET}"))).count("***") == 2


@pytest.mark.parametrize("url", ["", "data.sqlite", "http//x", "postgresql://host:port/db"])
def test_text_that_is_no_url_is_refused_with_an_example(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAWL_DATABASE_URL", url)
    if not url:
        assert default_url().startswith("sqlite:///")  # empty counts as unset
        return
    with pytest.raises(StorageError, match="this is not a database URL; use sqlite:///"):
        Database.from_url()


@pytest.mark.parametrize(
    "url", ["oracle://h/d", "redis://h/0", "sqlite+aiosqlite:///x", "postgresql+asyncpg://h/d", "sqlite+nosuch:///x"]
)
def test_an_unknown_kind_of_database_or_driver_is_refused_with_an_example(url: str) -> None:
    with pytest.raises(StorageError, match=r"use sqlite:///data/trawl\.sqlite, postgresql\+psycopg://\S+ or mysql\+pymysql://"):
        Database.from_url(url)


@pytest.mark.parametrize("url", ["mysql://h/d", "mariadb://h/d", "mysql+pymysql://h/d", "mariadb+pymysql://h/d"])
def test_mysql_and_mariadb_may_be_written_either_way(url: str) -> None:
    assert Database.from_url(url).name == "mysql+pymysql://h/d"


@pytest.mark.parametrize("driver", ["mysql+mysqldb", "mariadb+mariadbconnector", "mysql+aiomysql"])
def test_another_driver_of_mysql_is_refused_with_the_one_to_write(driver: str) -> None:
    with pytest.raises(StorageError, match=r"uses the driver pymysql: write mysql\+pymysql://u:\*\*\*@h/d$"):
        Database.from_url(f"{driver}://u:secret@h/d")


def test_the_url_of_the_environment_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAWL_DATABASE_URL", "sqlite:///elsewhere.sqlite")
    assert Database.from_url().name == "sqlite:///elsewhere.sqlite"


@pytest.mark.parametrize(
    ("statement", "values"),
    [
        ("INSERT INTO t VALUES (?, ?, ?)", (7, "x", 1)),
        ("INSERT INTO t VALUES (?, ?, ?)", (1, None, 1)),
        ("INSERT INTO t VALUES (?, ?, ?)", (1, "x", 2**70)),
        ("INSERT INTO t VALUES (?, ?, ?)", (1, "\ud800", 1)),
    ],
    ids=["CHECK", "NOT NULL", "integer too large", "lone surrogate"],
)
def test_a_row_that_cannot_be_stored_is_a_refusal(connection: Connection, statement: str, values: tuple[object, ...]) -> None:
    with pytest.raises((SQLAlchemyError, ValueError, OverflowError)) as caught:
        connection.exec_driver_sql(statement, values)
    reason = row_refusal(caught.value)
    assert reason is not None
    assert reason.startswith("the database refused it: ")


@pytest.mark.parametrize(
    ("code", "refused"),
    [(1406, True), (1264, True), (1048, True), (4025, True), (1644, True)]
    + [(code, False) for code in (1021, 1040, 1114, 1205, 1213, 2003, 2006, 2013, 1146, 1142)],
)
def test_mysqls_numbers_tell_a_row_from_the_database(code: int, refused: bool) -> None:
    error = DBAPIError.instance("x", None, pymysql.err.OperationalError(code, "said\nso"), pymysql.err.MySQLError)
    assert row_refusal(error) == (f"the database refused it: said so ({code})" if refused else None)


@pytest.mark.parametrize("statement", ["SELECT * FROM nowhere", "SELECT FROM WHERE", "ATTACH '/nonexistent/x/y' AS other"])
def test_anything_else_is_a_failure_of_the_database(connection: Connection, statement: str) -> None:
    with pytest.raises(SQLAlchemyError) as caught:
        connection.exec_driver_sql(statement)
    assert row_refusal(caught.value) is None


@pytest.mark.parametrize(
    ("said", "fix"),
    [
        ("database is locked", "another process holds a lock"),
        ("attempt to write a readonly database", "that this user may write"),
        ("unable to open database file", "that this user may write"),
        ("database or disk is full", "make room"),
        ("file is not a database", "move it away"),
        ("disk I/O error", "make room"),
        ("Access denied for user 'a'@'b' (using password: YES)", "user and password"),
        ("Access denied for user 'a'@'b' to database 'c'", "grant this user"),
        ("Unknown database 'c'", "create it first"),
        ("Can't connect to MySQL server on 'h' ([Errno 111] Connection refused)", "check that the server runs"),
        ("MySQL server has gone away (BrokenPipeError(32, 'Broken pipe'))", "check that the server runs"),
        ("The table 'posts' is full", "make room"),
        ("No module named 'pymysql'", "pip install 'trawl-fleet[mysql]'"),
        ("something new", "see the database's own log"),
    ],
)
def test_the_message_says_how_to_mend_it(said: str, fix: str) -> None:
    message = str(storage_error(make_url("sqlite:///x.sqlite"), sqlite3.OperationalError(said)))
    assert message.startswith(f"database sqlite:///x.sqlite: {said}; ")
    assert fix in message


def test_a_message_is_one_line() -> None:
    assert "\n" not in str(storage_error(make_url("sqlite:///x"), OSError("first\n\tsecond")))


def test_a_url_without_a_password_is_shown_as_it_is() -> None:
    assert masked(make_url("sqlite:///data/trawl.sqlite")) == "sqlite:///data/trawl.sqlite"
