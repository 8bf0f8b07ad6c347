"""A copy of the database in a file, and back, under connections that stay open."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sqlalchemy import select

from forums.storage import Database, parse
from forums.storage.copying import POSTGRESQL, SQLITE, check, check_copy, copy_from, copy_name, copy_to, has_posts
from forums.storage.engine import StorageError
from forums.storage.schema.tables import posts
from tests.support.items import post, wire


def stored(database: Database) -> list[str]:
    return [row.id for row in database.stream(select(posts.c.id))]


def test_a_copy_takes_the_place_of_everything_under_an_open_connection(database: Database, tmp_path: Path) -> None:
    assert database.write([parse(wire(post("kept")))]) == []
    copy = tmp_path / "copy"
    assert copy_to(database, copy)
    assert database.write([parse(wire(post("later")))]) == []
    check(copy, copy_name(database), database)
    copy_from(database, copy)
    assert stored(database) == ["kept"]
    assert has_posts(database)


def test_a_damaged_copy_and_one_of_another_kind_of_database_are_refused(database: Database, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.write_bytes(b"no database")
    with pytest.raises(StorageError, match=r"damaged|failed"):
        check(copy, copy_name(database), database)
    other = "database.pg" if copy_name(database) == SQLITE else SQLITE
    with pytest.raises(StorageError, match="name one of its kind"):
        check(copy, other, database)


def test_a_copy_whose_columns_are_no_names_is_refused(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    line = {"table": "posts", "create": "CREATE TABLE `posts` (id INT)", "columns": ["id`) SELECT 1 -- "]}
    copy.write_bytes(b"".join(json.dumps(one).encode() + b"\n" for one in (line, [1], {"rows": 1})))
    with pytest.raises(StorageError, match="none of Trawl's"):
        check_copy(copy)


def test_without_postgresqls_programs_a_sentence_says_what_to_install(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    if copy_name(database) != POSTGRESQL:
        assert copy_to(database, tmp_path / "copy")
    else:
        with pytest.raises(StorageError, match="install PostgreSQL's client programs"):
            copy_to(database, tmp_path / "copy")
