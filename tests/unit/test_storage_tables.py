"""The tables agree with the records, are documented, and keep their version."""

from __future__ import annotations

import re

import msgspec
import pytest
from sqlalchemy import Column, make_url
from sqlalchemy.schema import CreateTable

from workers.storage.schema import VERSION, mismatch
from workers.storage.tables import metadata, posts
from workers.storage.upsert import TABLE_OF


@pytest.mark.parametrize("record", TABLE_OF, ids=lambda record: record.__name__)
def test_each_column_of_a_table_is_a_field_of_its_record(record: type) -> None:
    columns = {column.name for column in TABLE_OF[record].columns if column.name != "first_seen_at"}
    assert columns <= {field.name for field in msgspec.structs.fields(record)}


@pytest.mark.parametrize("column", [c for t in metadata.sorted_tables for c in t.columns], ids=str)
def test_each_column_is_documented(column: Column[object]) -> None:
    assert column.comment
    assert column.comment.endswith(".")


def test_the_indexes_serve_the_threads_of_a_forum_the_comments_of_a_post_and_the_latest_runs() -> None:
    indexes = {index.name: [c.name for c in index.columns] for t in metadata.sorted_tables for index in t.indexes}
    assert indexes == {
        "ix_posts_site_forum_id_last_reply_at": ["site", "forum_id", "last_reply_at"],
        "ix_comments_site_post_id": ["site", "post_id"],
        "ix_crawler_runs_started_at": ["started_at"],
    }


def test_postgresql_sorts_names_and_ids_by_their_bytes() -> None:
    ddl = str(CreateTable(posts).compile(dialect=make_url("postgresql+psycopg://").get_dialect()()))
    assert re.findall(r'(\w+) TEXT COLLATE "C" NOT NULL', ddl) == ["site", "id", "forum_id"]


def test_tables_of_this_version_are_accepted_and_others_say_what_to_do() -> None:
    assert mismatch(VERSION) is None
    assert "upgrade Trawl" in str(mismatch(VERSION + 1))
    assert "another database" in str(mismatch(VERSION - 1))
