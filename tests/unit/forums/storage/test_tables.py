"""The tables agree with the records, are documented, and keep their version."""

from __future__ import annotations

import re

import msgspec
import pytest
from sqlalchemy import Table, make_url
from sqlalchemy.schema import CreateTable

from forums.records.stored import Check, Comment, Forum, Post, Scan
from forums.storage import checks, comments, posts, scans
from forums.storage.database import VERSION, mismatch
from forums.storage.schema.tables import forums, metadata

OWN = {  # columns that no record has: the writer works them out
    "posts": {
        "first_seen_at",
        "content_hash",
        "changed_at",
        "deleted_at",
        "tombstone_at",
        "checked_at",
        "next_check_at",
        "version",
    },
    "comments": {"first_seen_at", "content_hash", "changed_at", "deleted_at", "tombstone_at", "version"},
    "forums": {"first_seen_at"},
    "scans": set(),
    "checks": {"post_id", "whole_at", "gone_at"},
}
ELSEWHERE = {  # fields that are no columns
    "posts": {"deleted"},
    "comments": {"deleted"},
    "scans": {"front", "seen"},
    "checks": {"id", "forum_id", "listed_as", "reply_count", "last_reply_at", "asked", "counted_back", "walled"},
}


@pytest.mark.parametrize(
    ("record", "table"),
    [
        (Post, posts),
        (Comment, comments),
        (Forum, forums),
        (Scan, scans),
        (Check, checks),
    ],
)
def test_each_field_of_a_record_is_a_column_of_its_table(record: type, table: Table) -> None:
    fields = {field.name for field in msgspec.structs.fields(record)}
    assert {column.name for column in table.columns} - OWN[table.name] == fields - ELSEWHERE.get(table.name, set())


def test_each_column_is_documented_with_a_sentence() -> None:
    columns = [column for table in metadata.sorted_tables for column in table.columns]
    assert [str(column) for column in columns if not (column.comment or "").endswith(".")] == []


def test_the_indexes_serve_threads_of_a_forum_comments_of_a_post_what_is_due_and_the_latest_runs() -> None:
    indexes = {index.name: [c.name for c in index.columns] for t in metadata.sorted_tables for index in t.indexes}
    assert indexes == {
        "ix_posts_site_forum_id_last_reply_at": ["site", "forum_id", "last_reply_at"],
        "ix_posts_site_next_check_at": ["site", "next_check_at"],
        "ix_comments_site_post_id": ["site", "post_id"],
        "ix_run_members_spider_ended_at": ["spider", "ended_at"],
        "ix_run_members_ended_at": ["ended_at"],
    }


def test_postgresql_sorts_names_and_ids_by_their_bytes() -> None:
    ddl = str(CreateTable(posts).compile(dialect=make_url("postgresql+psycopg://").get_dialect()()))
    assert re.findall(r'(\w+) TEXT COLLATE "C" NOT NULL', ddl) == ["site", "id", "forum_id"]


def test_tables_of_this_version_are_accepted_and_others_say_what_to_do() -> None:
    assert mismatch(VERSION) is None
    assert "upgrade Trawl" in str(mismatch(VERSION + 1))
    assert "trawl db upgrade" in str(mismatch(VERSION - 1))
