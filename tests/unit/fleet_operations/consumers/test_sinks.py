"""Where items go: what each place keeps, what it refuses, and what becomes of the half-written end of a killed process."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from fleet_operations.consumers.consume import Item, SinkUnavailable
from fleet_operations.consumers.database_rows import DatabaseRows
from fleet_operations.consumers.files import JsonLines
from redis_components.errors import ConfigError
from workers.targets import parse_target


def batch(*values: Any) -> list[Item]:
    return [Item(place, value) for place, value in enumerate(values)]


def test_lines_follow_what_was_whole(tmp_path: Path) -> None:
    path = tmp_path / "new folder" / "books.jsonl"
    path.parent.mkdir()
    path.write_bytes(b'{"n":1}\n{"n":2')
    sink = JsonLines(path)
    assert sink.write(batch({"n": 2}, "text\nof two lines", {"ü": None})) == {}
    with pytest.raises(ConfigError, match="written by another process"):
        JsonLines(path)
    sink.close()
    assert [json.loads(line) for line in path.read_text("utf-8").splitlines()] == [
        {"n": 1},
        {"n": 2},
        "text\nof two lines",
        {"ü": None},
    ]


def test_a_large_file_and_an_old_one_are_rotated(tmp_path: Path) -> None:
    sink = JsonLines(tmp_path / "books.jsonl", max_bytes=10)
    for number in range(3):
        sink.write(batch({"number": number}))
    sink.close()
    old = JsonLines(tmp_path / "books.jsonl", max_age_s=1e-9)
    old.write(batch({"number": 3}))
    old.tick()
    old.close()
    files = sorted(tmp_path.glob("books-*.jsonl"))
    assert sorted(json.loads(file.read_text())["number"] for file in files) == [0, 1, 2, 3]
    assert (tmp_path / "books.jsonl").read_bytes() == b""


def test_a_table_is_made_widened_and_replaced_by_key(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'books.sqlite'}"
    sink = DatabaseRows(url, "books", "url")
    refused = sink.write(batch({"url": "a", "pages": 1}, {"pages": 2}, [], {"url": "b", "pages": "many"}))
    assert refused == {
        1: "it has no field 'url', by which rows are found",
        2: "it is not an object with fields, so it cannot be a row",
        3: "pages = 'many': its column holds whole numbers",
    }
    sink.write(batch({"url": "a", "pages": 3, "tags": ["x"]}, {"url": "b", "in stock": True}, {"url": "c"}))
    sink.write(batch({"url": "c"}))
    sink.close()
    with sa.create_engine(url, poolclass=sa.NullPool).connect() as connection:
        rows = connection.execute(sa.text('select url, pages, tags, "in stock" from books order by url')).all()
    assert [tuple(row) for row in rows] == [("a", 3, '["x"]', None), ("b", None, None, 1), ("c", None, None, None)]


def test_a_table_without_that_key_and_a_wrong_database_are_said(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'books.sqlite'}"
    with closing(DatabaseRows(url, "books")) as sink:
        sink.write(batch({"url": "a"}, {"url": "a"}))
    with closing(DatabaseRows(url, "books", "url")) as keyed, pytest.raises(ConfigError, match="the column url of books is not"):
        keyed.write(batch({"url": "a"}))
    with pytest.raises(SinkUnavailable, match="unable to open"):
        DatabaseRows("sqlite:////no/such/folder/x", "books").write(batch({"url": "a"}))


def test_targets_are_texts() -> None:
    assert parse_target("jsonl:a b.jsonl").place == "a b.jsonl"
    assert parse_target("postgresql+psycopg://u:p@h/d").kind.name == "database"
    for wrong in ("jsnl:x", "jsonl:", "csv:x", "http://x/in", "books.jsonl", "redis://u:secret@h"):
        with pytest.raises(ConfigError, match="is not a target: write jsonl:PATH") as error:
            parse_target(wrong)
        assert "secret" not in str(error.value)
