"""Opening a database: what is missing is made, what is wrong is one line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import inspect, text

from forums.storage import Database, StorageError, parse
from forums.storage.database import VERSION
from forums.storage.schema.tables import metadata, trawl_schema
from tests.support import warm_start
from tests.support.items import post, wire
from tests.support.postgres_server import PostgresServer

TABLES = {*metadata.tables, "trawl_migrations"}


def tables_of(database: Database) -> set[str]:
    """The names of its tables but those of the index of words, which each kind of database makes its own way."""
    return {name for name in inspect(database.engine).get_table_names() if not name.startswith("search_")}


def message_of(url: str) -> str:
    with pytest.raises(StorageError) as caught:
        Database.from_url(url).open()
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_an_empty_database_gets_its_tables_and_their_version(database: Database) -> None:
    assert tables_of(database) == TABLES
    with database.engine.connect() as connection:
        assert [(row.id, row.version) for row in connection.execute(trawl_schema.select())] == [(1, VERSION)]
    assert database.version() == VERSION


def test_opening_again_keeps_what_is_stored(database: Database, database_url: str) -> None:
    database.write([parse(wire(post()))])
    with Database.from_url(database_url) as again:
        assert len(list(again.stream(metadata.tables["posts"].select()))) == 1


def test_a_process_that_opens_a_database_twice_stores_what_it_writes_after_another_one_has_ended(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'trawl.sqlite'}"
    with Database.from_url(url) as database:
        database.write([parse(wire(post(id="before")))])
        database.open()  # as each round of the writer does
        other = "import sys; from forums.storage import Database; Database.from_url(sys.argv[1]).open().close()"
        warm_start.run([sys.executable, "-c", other, url], family="storage", check=True)  # the last one to close removes the log
        database.write([parse(wire(post(id="after")))])
        found = "import sqlite3, sys; print(*sorted(r[0] for r in sqlite3.connect(sys.argv[1]).execute('select id from posts')))"
        seen = subprocess.run(
            [sys.executable, "-c", found, str(tmp_path / "trawl.sqlite")], capture_output=True, text=True, check=True
        )
        assert seen.stdout.split() == ["after", "before"]


def test_tables_of_a_newer_trawl_are_refused(database: Database, database_url: str) -> None:
    with database.engine.begin() as connection:
        connection.execute(trawl_schema.update().values(version=VERSION + 1))
    assert f"its tables have version {VERSION + 1}, this Trawl knows {VERSION}; upgrade Trawl here" in message_of(database_url)


def test_tables_of_another_program_are_refused_and_left_alone(database: Database, database_url: str) -> None:
    with database.engine.begin() as connection:
        metadata.drop_all(connection)
        connection.execute(text("DROP TABLE trawl_migrations"))
        connection.execute(text("CREATE TABLE comments (text TEXT)"))
    assert "its table comments was not made by Trawl; name another database" in message_of(database_url)
    assert tables_of(database) == {"comments"}


def test_several_processes_may_open_an_empty_database_at_once(database_url: str) -> None:
    program = "import sys; from forums.storage import Database; Database.from_url(sys.argv[1]).open().close()"
    running = [
        warm_start.Popen([sys.executable, "-c", program, database_url], family="storage", stderr=subprocess.PIPE, text=True)
        for _ in range(5)
    ]
    ended = [(process.communicate(timeout=60)[1], process.returncode) for process in running]
    assert ended == [("", 0)] * 5


def test_sqlite_makes_missing_folders_and_works_in_wal(tmp_path: Path) -> None:
    with Database.from_url(f"sqlite:///{tmp_path}/new/folder/trawl.sqlite") as database, database.engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2  # FULL
        assert connection.exec_driver_sql("PRAGMA busy_timeout").scalar() == 10_000
    assert (tmp_path / "new/folder/trawl.sqlite").is_file()


def test_a_file_where_a_folder_should_be_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "name a place or a server that this user may write" in message_of(f"sqlite:///{tmp_path}/file/trawl.sqlite")


def test_a_folder_where_the_file_should_be_is_one_line(tmp_path: Path) -> None:
    assert "unable to open database file; name a place" in message_of(f"sqlite:///{tmp_path}")


def test_a_file_that_is_no_database_is_one_line_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("these are my notes, " * 100)
    assert "file is not a database; the file is not a sound SQLite database" in message_of(f"sqlite:///{tmp_path}/notes.txt")
    assert (tmp_path / "notes.txt").read_text().startswith("these are my notes")


def test_a_read_only_database_can_be_read_and_says_so_when_written(tmp_path: Path) -> None:
    path = tmp_path / "trawl.sqlite"
    with Database.from_url(f"sqlite:///{path}") as database:
        database.write([parse(wire(post()))])
    with Database.from_url(f"sqlite:///file:{path}?mode=ro&uri=true") as database:
        assert len(list(database.stream(metadata.tables["posts"].select()))) == 1
        with pytest.raises(StorageError, match="readonly database; name a place"):
            database.write([parse(wire(post()))])


@pytest.mark.parametrize("put_back", [False, True], ids=["removed", "replaced"])
def test_a_file_that_is_removed_while_it_is_open_does_not_swallow_rows(tmp_path: Path, put_back: bool) -> None:
    url = f"sqlite:///{tmp_path}/trawl.sqlite"
    with Database.from_url(url) as database:
        database.write([parse(wire(post("p1")))])
        for path in tmp_path.iterdir():
            path.unlink()
        if put_back:
            Database.from_url(url).open().close()
        with pytest.raises(StorageError, match="removed or replaced while it was open"):
            database.write([parse(wire(post("p2")))])
    with Database.from_url(url) as again:
        assert again.write([parse(wire(post("p2")))]) == []
        assert [row.id for row in again.stream(metadata.tables["posts"].select())] == ["p2"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can run a process as somebody else; other users see the same by chmod")
def test_a_folder_of_somebody_else_is_one_line(tmp_path: Path) -> None:
    # As root every folder can be written, so a process without that right has to try. `setpriv` keeps root's id, which may read
    # the virtual environment wherever it is, and takes the right to override permissions away.
    folder = tmp_path / "theirs"
    folder.mkdir(mode=0o500)
    program = "import sys; from forums.storage import Database; Database.from_url(sys.argv[1]).open()"
    drop = ["setpriv", "--bounding-set=-dac_override", "--inh-caps=-dac_override"]
    ended = subprocess.run(
        [*drop, sys.executable, "-c", program, f"sqlite:///{folder}/trawl.sqlite"], capture_output=True, text=True, timeout=60
    )
    assert ended.returncode == 1
    assert "unable to open database file; name a place or a server that this user may write" in ended.stderr


def test_a_wrong_password_is_one_line_that_does_not_show_it(postgres_server: PostgresServer) -> None:
    message = message_of(postgres_server.url("postgres", password="wr0ng-w0rd"))
    assert "password authentication failed" in message
    assert "user and password in TRAWL_DATABASE_URL" in message
    assert "wr0ng-w0rd" not in message


def test_an_unknown_user_and_an_unknown_database_are_one_line(postgres_server: PostgresServer) -> None:
    assert "user and password" in message_of(postgres_server.url("postgres", user="nobody-here"))
    assert "create it first" in message_of(postgres_server.url("nowhere"))


def test_a_server_that_is_not_there_is_one_line() -> None:
    message = message_of("postgresql+psycopg://ada:w0rd@127.0.0.1:1/db")
    assert "Connection refused" in message
    assert "check that the server runs, and that host, port" in message


def test_a_user_without_rights_is_one_line(postgres_server: PostgresServer) -> None:
    database = postgres_server.new_database().split("?")[0].rsplit("/", 1)[1]
    postgres_server.execute("DROP ROLE IF EXISTS guest")
    postgres_server.execute("CREATE ROLE guest LOGIN PASSWORD 'guest-w0rd'")
    message = message_of(postgres_server.url(database, user="guest", password="guest-w0rd"))
    assert "permission denied for schema public; grant this user the rights" in message
