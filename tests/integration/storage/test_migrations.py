"""Tables of an older Trawl are brought up to date with what is in them, by one process at a time, and only by those who write."""

from __future__ import annotations

import re
import subprocess
import sys
import warnings
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import create_engine, inspect, make_url, text
from sqlalchemy.exc import SAWarning

from forums.storage import Database, StorageError, comments, parse, posts, revisions
from forums.storage.database import MIGRATIONS_TABLE, VERSION
from forums.storage.read.search import Wanted, find
from forums.storage.schema import search_index
from forums.storage.schema.tables import board_months, metadata, trawl_schema
from forums.storage.write import posts_and_comments, upsert
from tests.support import warm_start
from tests.support.items import START, at, comment, post, wire

ROWS = [
    "INSERT INTO trawl_schema VALUES (1, 4, '2026-01-01 00:00:00', 'the first')",
    "INSERT INTO posts (site, id, forum_id, title, body, author, views, reply_count, url, fetched_at, first_seen_at) VALUES"
    " ('demo', 'p1', 'f1', 'Title of p1', 'old body', 'ada', 3, 2, 'http://127.0.0.1/post/p1', '2026-01-01 00:01:00',"
    " '2026-01-01 00:00:30')",
    "INSERT INTO comments (site, id, post_id, author, body, url, fetched_at, first_seen_at) VALUES ('demo', 'c1', 'p1', 'bob',"
    " 'Body of c1', 'http://127.0.0.1/comment/p1/1', '2026-01-01 00:01:00', '2026-01-01 00:01:00')",
    "INSERT INTO scans (site, forum_id, started_at, finished_at, pages, threads, outcome) VALUES ('demo', 'f1',"
    " '2026-01-01 00:00:00', '2026-01-01 00:00:20', 3, 60, 'complete')",
]


@pytest.fixture
def old_url(database_url: str) -> str:
    """URL of a database as commit 49295b45 made it, with a row in each table of items."""
    make_old(database_url)
    return database_url


@pytest.fixture
def old_url_but_mysql(database_url: str) -> str:
    """The same, of SQLite and PostgreSQL."""
    if make_url(database_url).get_backend_name() == "mysql":
        pytest.skip("MySQL has no index of words, and keeps tables that are there")
    make_old(database_url)
    return database_url


def make_old(url: str) -> None:
    """Make the tables of version 4, with rows whose hashes an even older version left out."""
    engine = Database.from_url(url).engine
    script = Path(__file__).with_name(f"version_4.{engine.dialect.name}.sql").read_text()
    form = r"T\1.000000Z'" if engine.dialect.name == "sqlite" else r" \1'"
    with engine.begin() as connection:
        for statement in [*script.split(";\n"), *ROWS]:
            if statement.strip():
                own = re.sub(r" (\d\d:\d\d:\d\d)'", form, statement)
                connection.exec_driver_sql(own, execution_options={"no_parameters": True})
    engine.dispose()


def rows(database: Database, table: Any) -> list[dict[str, Any]]:
    return [dict(row._mapping) for row in database.stream(table.select().order_by(*table.primary_key.columns))]


def differences(database: Database) -> list[Any]:
    """What the tables lack of `tables.py`, or have besides; comments stay as the first version made them."""

    def ours(thing: Any, name: str | None, kind: str, *_: Any) -> bool:
        others = {"profile", "base_url"}  # columns of version 4 alone
        return name in metadata.tables if kind == "table" else name not in others and "published" not in (name or "")

    with database.engine.connect() as connection:
        schema = connection.dialect.default_schema_name
        same = {"'false'": "0", "false": "0"}  # MySQL's booleans are numbers

        def other_default(*given: Any) -> bool | None:
            stored, wanted = given[3], given[-1]
            return False if connection.dialect.name == "mysql" and stored == same.get(wanted, wanted) else None

        options = {"compare_type": True, "compare_server_default": other_default, "include_object": ours}
        context = MigrationContext.configure(connection, opts=options | {"version_table_schema": schema})
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Skipped unsupported reflection of expression-based index", SAWarning)
            found = compare_metadata(context, metadata)
        return [one for one in found if "comment" not in one[0][0]]


def test_a_new_database_has_what_the_tables_say(database: Database) -> None:
    assert differences(database) == []


def test_a_database_of_version_4_becomes_the_same_and_keeps_its_rows(old_url: str) -> None:
    with Database.from_url(old_url) as database:
        assert differences(database) == []
        [stored] = rows(database, posts)
        assert (stored["body"], stored["first_seen_at"]) == ("old body", START + timedelta(seconds=30))
        assert (stored["sticky"], stored["content_hash"], stored["deleted_at"]) == (False, None, None)
        assert [row["mode"] for row in rows(database, metadata.tables["scans"])] == ["scan"]
        with database.engine.connect() as connection:
            assert [row.version for row in connection.execute(trawl_schema.select())] == [4], "an older Trawl may write"
        assert database.version() == VERSION


def test_rows_of_an_older_trawl_are_searched_by_the_index(old_url_but_mysql: str) -> None:
    with Database.from_url(old_url_but_mysql) as database:
        assert [hit.id for hit in find(database, Wanted(text="body", author="ADA")).hits] == ["p1"]
        with database.engine.connect() as connection:
            assert connection.exec_driver_sql(f"SELECT id FROM {search_index.ROWS} ORDER BY id").scalars().all() == ["c1", "p1"]
            assert connection.execute(board_months.select()).all() == [("demo", "f1", "2026-01", 1)]
        assert [hit.id for hit in find(database, Wanted()).hits] == ["c1", "p1"], "by their publication, without an index before"


def test_texts_without_a_hash_are_compared_when_they_are_fetched_again(old_url: str) -> None:
    with Database.from_url(old_url) as database:
        database.write([parse(wire(item)) for item in (post(body="new body", fetched_at=at(9)), comment(fetched_at=at(9)))])
        [kept] = rows(database, revisions)
        assert (kept["kind"], kept["body"], kept["last_fetched_at"]) == ("post", "old body", START + timedelta(minutes=1))
        assert rows(database, posts)[0]["body"] == "new body"
        [same] = rows(database, comments)
        assert (same["fetched_at"], same["changed_at"]) == (START + timedelta(minutes=9), START + timedelta(minutes=1))


def test_a_writer_of_version_4_that_is_still_running_goes_on(old_url: str) -> None:
    with Database.from_url(old_url) as database:
        with database.engine.begin() as connection:
            connection.exec_driver_sql(
                "INSERT INTO posts (site, id, forum_id, title, body, url, fetched_at, first_seen_at)"
                " SELECT site, 'p2', forum_id, title, body, url, fetched_at, first_seen_at FROM posts"
            )
        database.write([parse(wire(post("p2", title="Title of p1", body="old body", fetched_at=at(9))))])
        assert rows(database, revisions) == []
        assert [row["content_hash"] is None for row in rows(database, posts)] == [True, False]


@pytest.fixture
def older(monkeypatch: pytest.MonkeyPatch) -> Callable[[Database, list[Any]], None]:
    """Store items as a Trawl of version 4 does: with changes in the log of events, without index and numbers."""

    def write(database: Database, items: list[Any]) -> None:
        with monkeypatch.context() as patch:
            for where, name in ((search_index, "index"), (upsert, "note_indexed")):
                patch.setattr(where, name, lambda *_, **__: None)
            patch.setattr(posts_and_comments, "add_threads", lambda *_: None)
            database.write([parse(wire(item)) for item in items])

    return write


def found(database: Database, text: str) -> list[str]:
    return sorted(hit.id for hit in find(database, Wanted(text=text)).hits)


def months(database: Database) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in rows(database, board_months)]


def test_what_a_writer_of_version_4_stored_meanwhile_is_indexed_and_counted_by_the_next_that_opens(
    old_url: str, older: Callable[[Database, list[Any]], None]
) -> None:
    with Database.from_url(old_url) as database:
        older(database, [post("p2", title="beside", fetched_at=at(2)), comment("c2", body="beside", fetched_at=at(2))])
        older(database, [post("p1", body="edited", forum_id="f2", fetched_at=at(3)), post("p3", deleted=True, fetched_at=at(3))])
        older(database, [comment("c2", body="edited", fetched_at=at(4))])
        database.write([parse(wire(comment("c3", body="here again", fetched_at=at(6))))])
        assert database.version() == VERSION
    for _ in range(2):
        with Database.from_url(old_url) as database:
            assert found(database, "beside") == ["p2"]
            assert found(database, "edited") == ["c2", "p1"]
            assert found(database, "again") == ["c3"]
            assert found(database, "old") == []
            stored = Counter((row["site"], row["forum_id"]) for row in rows(database, posts))
            assert sum((Counter({month[:2]: month[3]}) for month in months(database)), Counter()) == stored


def test_the_rows_of_this_trawl_alone_are_not_indexed_again(old_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with Database.from_url(old_url) as database:
        database.write([parse(wire(comment("c0", fetched_at=at(1))))])
    monkeypatch.setattr(upsert, "fill", lambda _: pytest.fail("all rows are indexed again"))
    with Database.from_url(old_url) as database:
        database.write([parse(wire(comment("c1", fetched_at=at(2))))])
    Database.from_url(old_url).open().close()


def test_newer_tables_that_a_trawl_of_this_version_may_write_are_taken(database: Database, database_url: str) -> None:
    with database.engine.begin() as connection:
        connection.exec_driver_sql(f"UPDATE {MIGRATIONS_TABLE} SET version_num = '0099'")
    with Database.from_url(database_url) as again:
        assert again.version() == VERSION
        assert again.write([parse(wire(post()))]) == []


def test_who_only_reads_does_not_upgrade(old_url: str) -> None:
    with pytest.raises(StorageError, match=f"version 4, this Trawl reads {VERSION}; upgrade them by `trawl db upgrade`"):
        Database.from_url(old_url).open(upgrade=False)
    engine = create_engine(old_url)
    assert "run_members" not in inspect(engine).get_table_names()
    engine.dispose()


def test_several_processes_may_upgrade_at_once(old_url: str) -> None:
    program = "import sys; from forums.storage import Database; Database.from_url(sys.argv[1]).open().close()"
    command = [sys.executable, "-c", program, old_url]
    running = [warm_start.Popen(command, family="storage", stderr=subprocess.PIPE, text=True) for _ in range(2)]
    assert [(process.communicate(timeout=60)[1], process.returncode) for process in running] == [("", 0)] * 2
    with Database.from_url(old_url) as database:
        assert differences(database) == []


def test_a_table_of_another_program_stops_an_upgrade_and_nothing_has_changed(old_url_but_mysql: str) -> None:
    engine = create_engine(old_url_but_mysql)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE run_members (name TEXT)"))
    before = inspect(engine).get_columns("posts")
    with pytest.raises(StorageError, match="its table run_members was not made by Trawl"):
        Database.from_url(old_url_but_mysql).open()
    assert [c["name"] for c in inspect(engine).get_columns("posts")] == [c["name"] for c in before]
    engine.dispose()


def test_tables_of_a_version_between_are_not_upgraded(old_url: str) -> None:
    engine = create_engine(old_url)
    with engine.begin() as connection:
        connection.execute(text("UPDATE trawl_schema SET version = 5"))
    engine.dispose()
    with pytest.raises(StorageError, match="tables of version 5 cannot be upgraded, only those of 4: export its rows"):
        Database.from_url(old_url).open()
