"""Tables of an older Trawl are brought up to date with what is in them, by one process at a time, and only by those who write."""

from __future__ import annotations

import subprocess
import sys
import warnings
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine, inspect, make_url, text
from sqlalchemy.exc import SAWarning

from forums.storage import Database, StorageError, comments, metadata, parse, posts, revisions
from forums.storage.read.search import Wanted, find
from forums.storage.schema import search_index
from forums.storage.schema.tables import board_months, trawl_schema
from forums.storage.schema.version import VERSION
from tests.support import warm_start
from tests.support.items import START, at, comment, post, wire

ROWS = [
    "INSERT INTO trawl_schema VALUES (1, 1, '2026-01-01T00:00:00.000000Z')",
    "INSERT INTO posts VALUES ('demo', 'p1', 'f1', 'Title of p1', 'old body', 'ada', NULL, 3, 2, NULL, 'http://127.0.0.1/post/p1',"
    " '2026-01-01T00:01:00.000000Z', '2026-01-01T00:00:30.000000Z')",
    "INSERT INTO comments VALUES ('demo', 'c1', 'p1', NULL, 'bob', 'Body of c1', NULL, 'http://127.0.0.1/comment/p1/1',"
    " '2026-01-01T00:01:00.000000Z', '2026-01-01T00:01:00.000000Z')",
    "INSERT INTO scans VALUES ('demo', 'f1', '2026-01-01T00:00:00.000000Z', '2026-01-01T00:00:20.000000Z', 3, 60, 'complete',"
    " NULL)",
]


@pytest.fixture
def old_url(database_url: str) -> str:
    """URL of a database as the released version 1 made it, with a row in each table of items. It knew no MySQL."""
    if make_url(database_url).get_backend_name() == "mysql":
        pytest.skip("version 1 knew no MySQL: there is no such database")
    engine = create_engine(database_url)
    script = Path(__file__).with_name(f"version_1.{engine.dialect.name}.sql").read_text()
    with engine.begin() as connection:
        for statement in [*script.split(";\n"), *ROWS]:
            if statement.strip():
                connection.exec_driver_sql(statement)
    engine.dispose()
    return database_url


def rows(database: Database, table: Any) -> list[dict[str, Any]]:
    return [dict(row._mapping) for row in database.stream(table.select().order_by(*table.primary_key.columns))]


def differences(database: Database) -> list[Any]:
    """What the tables lack of `tables.py`, or have besides."""

    def ours(thing: Any, name: str | None, kind: str, *_: Any) -> bool:
        return name in metadata.tables if kind == "table" else "published" not in (name or "")  # `schema/published.py`

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
            return list(compare_metadata(context, metadata))


def test_the_scripts_make_what_the_tables_say(database: Database) -> None:
    assert differences(database) == []


def test_a_database_of_version_1_becomes_the_same_and_keeps_its_rows(old_url: str) -> None:
    with Database.from_url(old_url) as database:
        assert differences(database) == []
        [stored] = rows(database, posts)
        assert (stored["body"], stored["first_seen_at"]) == ("old body", START + timedelta(seconds=30))
        assert (stored["sticky"], stored["content_hash"], stored["deleted_at"]) == (False, None, None)
        assert [row["mode"] for row in rows(database, metadata.tables["scans"])] == ["scan"]
        with database.engine.connect() as connection:
            assert [row.version for row in connection.execute(trawl_schema.select())] == [VERSION]


def test_rows_of_an_older_trawl_are_searched_by_the_index(old_url: str) -> None:
    with Database.from_url(old_url) as database:
        assert [hit.id for hit in find(database, Wanted(text="body", author="ADA")).hits] == ["p1"]
        with database.engine.connect() as connection:
            assert connection.exec_driver_sql(f"SELECT id FROM {search_index.ROWS} ORDER BY id").scalars().all() == ["c1", "p1"]
            assert connection.execute(board_months.select()).all() == [("demo", "f1", "2026-01", 1)]
        assert [hit.id for hit in find(database, Wanted()).hits] == ["c1", "p1"], "by their publication, without an index before"


def test_the_first_version_1_had_no_history(old_url: str) -> None:
    engine = create_engine(old_url)
    with engine.begin() as connection:
        connection.execute(text("DROP TABLE crawler_runs"))
    engine.dispose()
    with Database.from_url(old_url) as database:
        assert differences(database) == []


def test_texts_of_version_1_are_compared_when_they_are_fetched_again(old_url: str) -> None:
    with Database.from_url(old_url) as database:
        database.write([parse(wire(item)) for item in (post(body="new body", fetched_at=at(9)), comment(fetched_at=at(9)))])
        [kept] = rows(database, revisions)
        assert (kept["kind"], kept["body"], kept["last_fetched_at"]) == ("post", "old body", START + timedelta(minutes=1))
        assert rows(database, posts)[0]["body"] == "new body"
        [same] = rows(database, comments)
        assert (same["fetched_at"], same["changed_at"]) == (START + timedelta(minutes=9), START + timedelta(minutes=1))


def test_a_writer_of_version_1_that_is_still_running_goes_on(old_url: str) -> None:
    with Database.from_url(old_url) as database:
        with database.engine.begin() as connection:
            connection.exec_driver_sql(
                "INSERT INTO posts (site, id, forum_id, title, body, url, fetched_at, first_seen_at)"
                " SELECT site, 'p2', forum_id, title, body, url, fetched_at, first_seen_at FROM posts"
            )
        database.write([parse(wire(post("p2", title="Title of p1", body="old body", fetched_at=at(9))))])
        assert rows(database, revisions) == []
        assert [row["content_hash"] is None for row in rows(database, posts)] == [True, False]


def test_who_only_reads_does_not_upgrade(old_url: str) -> None:
    with pytest.raises(StorageError, match=f"version 1, this Trawl reads {VERSION}; upgrade them by `trawl db upgrade`"):
        Database.from_url(old_url).open(upgrade=False)
    engine = create_engine(old_url)
    assert "forums" not in inspect(engine).get_table_names()
    engine.dispose()


def test_several_processes_may_upgrade_at_once(old_url: str) -> None:
    program = "import sys; from forums.storage import Database; Database.from_url(sys.argv[1]).open().close()"
    command = [sys.executable, "-c", program, old_url]
    running = [warm_start.Popen(command, family="storage", stderr=subprocess.PIPE, text=True) for _ in range(2)]
    assert [(process.communicate(timeout=60)[1], process.returncode) for process in running] == [("", 0)] * 2
    with Database.from_url(old_url) as database:
        assert differences(database) == []


def test_a_table_of_another_program_stops_an_upgrade_and_nothing_has_changed(old_url: str) -> None:
    engine = create_engine(old_url)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE sites (name TEXT)"))
    before = inspect(engine).get_columns("posts")
    with pytest.raises(StorageError, match="its table sites was not made by Trawl"):
        Database.from_url(old_url).open()
    assert [c["name"] for c in inspect(engine).get_columns("posts")] == [c["name"] for c in before]
    engine.dispose()


def test_the_last_script_is_the_version_that_this_trawl_knows() -> None:
    config = Config()
    config.set_main_option("script_location", "forums.storage:migrations")
    scripts = ScriptDirectory.from_config(config)
    assert scripts.get_heads() == [f"{VERSION:04}"]
    assert [script.revision for script in scripts.walk_revisions()] == [f"{n:04}" for n in range(VERSION, 0, -1)]
