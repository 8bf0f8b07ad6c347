"""Export: every row once, in a stable order, filtered, in a form that other programs read back."""

from __future__ import annotations

import csv
import io
import json
import tracemalloc
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from forums.storage import Database, parse, posts, scans
from forums.storage.read.export import export
from redis_components.errors import ConfigError
from tests.support.items import START, at, check, comment, forum, post, scan, wire


@pytest.fixture
def filled(database: Database) -> Database:
    """Posts p1 (site a, minute 10), p1 (site b, minute 20), p2 (site a, minute 30); one comment; one scan."""
    items = [
        post("p2", site="a", fetched_at=at(30)),
        post("p1", site="b", fetched_at=at(20)),
        post("p1", site="a"),
        comment(),
        scan(),
    ]
    database.write([parse(wire(item)) for item in items])
    return database


def lines(database: Database, table: str = "posts", **filters: Any) -> list[dict[str, object]]:
    out = io.BytesIO()
    count = export(database, table, "jsonl", out, **filters)
    found = [json.loads(line) for line in out.getvalue().splitlines()]
    assert count == len(found)
    return found


def ids(rows: list[dict[str, object]]) -> list[tuple[object, object]]:
    return [(row["site"], row["id"]) for row in rows]


def test_json_lines_hold_every_column_and_times_in_utc(filled: Database) -> None:
    expected = post("p1", site="a") | {"first_seen_at": at(10), "changed_at": at(10), "sticky": False}
    del expected["kind"]
    [row, *_] = lines(filled)
    assert {name: row[name] for name in expected} == expected
    assert list(row) == [column.name for column in posts.columns]


def test_rows_come_in_the_order_of_the_primary_key(filled: Database) -> None:
    assert ids(lines(filled)) == [("a", "p1"), ("a", "p2"), ("b", "p1")]


def test_order_is_by_bytes_whatever_the_locale(database: Database) -> None:
    database.write([parse(wire(post(key))) for key in ("a", "B", "ä", "10", "9", "_")])
    assert [key for _, key in ids(lines(database))] == ["10", "9", "B", "_", "a", "ä"]


def test_rows_of_one_site(filled: Database) -> None:
    assert ids(lines(filled, site="a")) == [("a", "p1"), ("a", "p2")]
    assert lines(filled, site="nowhere") == []


def test_rows_fetched_since_a_moment_in_any_zone(filled: Database) -> None:
    since = START + timedelta(minutes=20)
    assert ids(lines(filled, since=since)) == [("a", "p2"), ("b", "p1")]
    assert ids(lines(filled, since=since.astimezone(timezone(timedelta(hours=-8))))) == [("a", "p2"), ("b", "p1")]
    assert ids(lines(filled, since=since + timedelta(microseconds=1))) == [("a", "p2")]


def test_comments_and_scans_are_exported_too(filled: Database) -> None:
    assert [row["id"] for row in lines(filled, "comments")] == ["c1"]
    assert [row["forum_id"] for row in lines(filled, "scans", since=datetime(2026, 1, 1, tzinfo=UTC))] == ["f1"]


def test_removed_rows_come_with_the_time_of_their_removal_also_since_then(database: Database) -> None:
    database.write([parse(wire(item)) for item in (post("p1"), post("p2"), check("p2", gone=True, started_at=at(50)))])
    assert [(row["id"], row["deleted_at"]) for row in lines(database)] == [("p1", None), ("p2", at(50))]
    assert ids(lines(database, since=START + timedelta(minutes=40))) == [("demo", "p2")]


def test_revisions_come_since_they_were_replaced(database: Database) -> None:
    for minute, body in ((10, "first"), (20, "second"), (30, "third")):
        database.write([parse(wire(comment(body=body, fetched_at=at(minute))))])
    assert sorted(row["body"] for row in lines(database, "revisions")) == ["first", "second"]
    assert len(lines(database, "revisions", since=START + timedelta(minutes=25))) == 2
    assert lines(database, "revisions", since=START + timedelta(minutes=31)) == []


def test_forums_are_exported(database: Database) -> None:
    database.write([parse(wire(item)) for item in (forum("f9"), scan())])
    assert [(row["id"], row["name"]) for row in lines(database, "forums")] == [("f1", None), ("f9", "Name of f9")]
    assert [row["id"] for row in lines(database, "forums", since=START + timedelta(minutes=10))] == ["f9"]


def test_csv_is_read_back_by_a_csv_reader(database: Database) -> None:
    item = post(title='a "quoted", title', body="two\nlines\r\nand\ttabs", views=None)
    database.write([parse(wire(item))])
    out = io.BytesIO()
    assert export(database, "posts", "csv", out) == 1
    [row] = csv.DictReader(io.StringIO(out.getvalue().decode(), newline=""))
    assert (row["title"], row["body"], row["views"]) == (item["title"], item["body"], "")
    assert (row["fetched_at"], row["reply_count"], row["sticky"]) == (at(10), "2", "false")


def test_an_empty_table_is_no_line_or_only_the_header(database: Database) -> None:
    assert lines(database) == []
    out = io.BytesIO()
    assert export(database, "scans", "csv", out) == 0
    assert out.getvalue().decode() == ",".join(column.name for column in scans.columns) + "\n"


@pytest.mark.parametrize(
    ("table", "fmt", "since", "message"),
    [
        ("threads", "jsonl", None, "table 'threads' is unknown; use one of posts, comments, forums, scans, revisions"),
        ("trawl_schema", "jsonl", None, "table 'trawl_schema' is unknown"),
        ("posts", "xml", None, "export format 'xml' is unknown; use one of jsonl, csv"),
        ("posts", "csv", datetime(2026, 1, 1), "since 2026-01-01T00:00:00 has no time zone"),
    ],
)
def test_wrong_use_is_one_line_and_writes_nothing(
    filled: Database, table: str, fmt: str, since: datetime | None, message: str
) -> None:
    out = io.BytesIO()
    with pytest.raises(ConfigError, match=message):
        export(filled, table, fmt, out, since=since)
    assert out.getvalue() == b""


class Sink(io.BytesIO):
    """Counts and forgets."""

    def write(self, data: Any) -> int:
        return len(data)


def test_memory_does_not_grow_with_the_rows(database: Database) -> None:
    body = "x" * 4_000
    for start in range(0, 4_000, 1000):
        database.write([parse(wire(post(f"p{n}", body=body))) for n in range(start, start + 1000)])
    tracemalloc.start()
    try:
        assert export(database, "posts", "jsonl", Sink()) == 4_000
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # 16 MB of bodies; a thousand rows at once are about 5 MB, twice while they are turned into text
    assert peak < 10_000_000


def test_rows_written_during_an_export_do_not_disturb_it(database: Database) -> None:
    database.write([parse(wire(post(f"p{n:04}"))) for n in range(3000)])

    class WritesMeanwhile(io.BytesIO):
        wrote = False

        def write(self, data: Any) -> int:
            if not self.wrote:
                self.wrote = True
                database.write([parse(wire(post(f"q{n}"))) for n in range(100)])
            return super().write(data)

    out = WritesMeanwhile()
    assert export(database, "posts", "jsonl", out) == 3000
    assert len(lines(database)) == 3100


def test_a_consumer_that_goes_away_ends_the_export_and_leaves_the_database_usable(database: Database) -> None:
    database.write([parse(wire(post(f"p{n}"))) for n in range(10)])

    class Closed(io.BytesIO):
        def write(self, data: Any) -> int:
            raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        export(database, "posts", "jsonl", Closed())
    assert database.write([parse(wire(post(fetched_at=at(99))))]) == []
