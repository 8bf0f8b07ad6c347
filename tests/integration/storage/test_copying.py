"""A copy of the database in a file, and back, under connections that stay open."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import select

from forums.storage import Database, parse
from forums.storage.copying import SQLITE, check, copy_from, copy_name, copy_to, has_posts
from forums.storage.errors import StorageError
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


def test_without_the_servers_programs_a_sentence_says_what_to_install(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    if copy_name(database) == SQLITE:
        assert copy_to(database, tmp_path / "copy")
    else:
        with pytest.raises(StorageError, match="is not on PATH: install the database's client programs"):
            copy_to(database, tmp_path / "copy")


def test_a_copy_of_mysql_by_an_older_trawl_is_named(database: Database, tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="MySQL or MariaDB in the form of an older Trawl"):
        check(tmp_path / "copy", "database.mysql", database)
