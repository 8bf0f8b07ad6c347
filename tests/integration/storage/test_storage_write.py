"""Upserts: in any order, any number of times, with bad rows among them, the outcome is the newest good state of everything."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import text

from forums.storage import Database, StorageError, comments, parse, posts, scans
from forums.storage.write.posts_and_comments import content_hash
from tests.support.items import START, at, check, comment, post, scan, wire


def write(database: Database, *items: dict[str, Any]) -> list[tuple[int, str]]:
    return [(one.place, one.reason) for one in database.write([parse(wire(item)) for item in items])]


def rows(database: Database, table: Any) -> list[dict[str, Any]]:
    return [dict(row._mapping) for row in database.stream(table.select().order_by(*table.primary_key.columns))]


def test_what_is_written_is_read_back_exactly(database: Database) -> None:
    assert write(database, post(), comment(parent_id="c0"), scan()) == []
    [stored] = rows(database, posts)
    expected = post() | {name: datetime.fromisoformat(post()[name]) for name in ("created_at", "last_reply_at", "fetched_at")}
    del expected["kind"]
    seen = dict.fromkeys(("fetched_at", "first_seen_at", "changed_at"), START + timedelta(minutes=10))
    nulls = dict.fromkeys(("body_html", "edited_at", "deleted_at", "tombstone_at", "checked_at", "next_check_at"))
    assert stored == expected | seen | nulls | {
        "version": 1,
        "sticky": False,
        "content_hash": content_hash(post()["title"], post()["body"]),
    }
    assert rows(database, comments)[0]["parent_id"] == "c0"
    assert rows(database, scans)[0]["threads"] == 60


def test_times_are_read_back_as_aware_utc_to_the_microsecond(database: Database) -> None:
    write(database, post(created_at="2026-03-04T05:06:07.123456+05:30", last_reply_at=None))
    [stored] = rows(database, posts)
    assert stored["created_at"] == datetime(2026, 3, 3, 23, 36, 7, 123456, tzinfo=UTC)
    assert stored["created_at"].tzinfo is UTC
    assert stored["last_reply_at"] is None


def test_a_comment_may_come_before_its_post(database: Database) -> None:
    assert write(database, comment(post_id="p9")) == []
    assert write(database, post("p9")) == []


def test_the_same_batch_twice_changes_nothing(database: Database) -> None:
    batch = [post(f"p{n}") for n in range(50)] + [comment(f"c{n}") for n in range(50)] + [scan()]
    write(database, *batch)
    before = [rows(database, table) for table in (posts, comments, scans)]
    write(database, *batch)
    assert [rows(database, table) for table in (posts, comments, scans)] == before


def test_a_newer_state_overwrites_and_keeps_when_it_was_first_seen(database: Database) -> None:
    write(database, post(title="old", fetched_at=at(10)))
    write(database, post(title="new", views=None, fetched_at=at(20)))
    [stored] = rows(database, posts)
    assert (stored["title"], stored["views"]) == ("new", None)
    assert (stored["first_seen_at"], stored["fetched_at"]) == (START + timedelta(minutes=10), START + timedelta(minutes=20))


def test_an_older_state_that_comes_late_changes_nothing(database: Database) -> None:
    write(database, post(title="new", fetched_at=at(20)))
    write(database, post(title="old", fetched_at=at(10)))
    assert [row["title"] for row in rows(database, posts)] == ["new"]


def test_fractions_of_a_second_and_zones_count_when_times_are_compared(database: Database) -> None:
    write(database, post(title="new", fetched_at="2026-01-01T00:00:00.5Z"))
    write(database, post(title="old", fetched_at="2026-01-01T01:00:00+01:00"))
    assert [row["title"] for row in rows(database, posts)] == ["new"]


def test_a_state_of_the_same_time_overwrites(database: Database) -> None:
    write(database, post(title="first"))
    write(database, post(title="second"))
    assert [row["title"] for row in rows(database, posts)] == ["second"]


def test_several_states_in_one_batch_leave_the_newest(database: Database) -> None:
    states = [post(title=str(minute), fetched_at=at(minute)) for minute in (3, 9, 1, 7)]
    assert write(database, *states, comment(), comment(body="again")) == []
    [stored] = rows(database, posts)
    assert (stored["title"], stored["first_seen_at"]) == ("9", START + timedelta(minutes=1))
    assert [row["body"] for row in rows(database, comments)] == ["again"]


def test_the_same_id_on_two_sites_is_two_posts(database: Database) -> None:
    write(database, post(site="a"), post(site="b"))
    assert [row["site"] for row in rows(database, posts)] == ["a", "b"]


def test_a_scan_is_one_row_for_each_start(database: Database) -> None:
    write(database, scan(), scan(started_at=at(30), finished_at=at(31)), scan("f2", outcome="failed", reason="503"))
    assert [(row["forum_id"], row["outcome"]) for row in rows(database, scans)] == [
        ("f1", "complete"),
        ("f1", "complete"),
        ("f2", "failed"),
    ]


def test_large_numbers_long_ids_and_any_text_are_stored(database: Database) -> None:
    item = post(
        "ü" * 255,
        site="s" * 255,
        views=2**63 - 1,
        reply_count=-1,
        body="x" * 3_000_000,
        title="'; DROP TABLE posts; --\n\t\u2028",
    )
    assert write(database, item) == []
    [stored] = rows(database, posts)
    assert {name: stored[name] for name in ("id", "views", "reply_count", "body", "title")} == {
        name: item[name] for name in ("id", "views", "reply_count", "body", "title")
    }


@contextmanager
def forbidden(database: Database, word: str) -> Iterator[None]:
    """A rule of the operator's own that refuses posts with this title; it goes at the end, so that the database is used again."""
    refusing = f"ON posts WHEN new.title = '{word}' BEGIN SELECT RAISE(ABORT, 'no {word}'); END"
    is_sqlite = database.engine.dialect.name == "sqlite"
    with database.engine.begin() as connection:
        for act in ("INSERT", "UPDATE") if is_sqlite else ():
            connection.execute(text(f"CREATE TRIGGER no_{word}_{act} BEFORE {act} {refusing}"))
        if not is_sqlite:
            connection.execute(text(f"ALTER TABLE posts ADD CONSTRAINT no_{word} CHECK (title <> '{word}')"))
    yield
    if not is_sqlite:
        with database.engine.begin() as connection:
            connection.execute(text(f"ALTER TABLE posts DROP CONSTRAINT no_{word}"))


@pytest.mark.parametrize("places", [[0], [99], [17, 18, 60], list(range(100))], ids=["first", "last", "some", "all"])
def test_rows_that_the_database_refuses_are_returned_and_the_others_stored(database: Database, places: list[int]) -> None:
    batch = [post(f"p{n:02}", title="spam" if n in places else "fine") for n in range(100)]
    with forbidden(database, "spam"):
        refused = write(database, *batch, comment())
    assert sorted(place for place, _ in refused) == places
    assert all(reason.startswith("the database refused it: ") and "no" in reason for _, reason in refused)
    assert [row["id"] for row in rows(database, posts)] == [f"p{n:02}" for n in range(100) if n not in places]
    assert len(rows(database, comments)) == 1


def test_when_the_newest_state_is_refused_the_next_older_one_is_stored(database: Database) -> None:
    batch = [post(title=title, fetched_at=at(minute)) for minute, title in enumerate(["first", "second", "spam", "spam"])]
    with forbidden(database, "spam"):
        assert sorted(place for place, _ in write(database, *batch)) == [2, 3]
    assert [row["title"] for row in rows(database, posts)] == ["second"]


def test_a_nul_byte_is_refused_alone_by_postgresql_and_stored_by_others(database: Database) -> None:
    refused = write(database, post("p1"), post("p2", body="a\0b"), post("p3"))
    expected = [1] if database.engine.dialect.name == "postgresql" else []
    assert [place for place, _ in refused] == expected
    assert len(rows(database, posts)) == 3 - len(expected)


def test_a_time_that_does_not_exist_in_utc_is_refused_alone(database: Database) -> None:
    refused = write(database, post("p1"), post("p2", created_at="0001-01-01T00:00:00+05:00"))
    assert [place for place, _ in refused] == [1]
    assert [row["id"] for row in rows(database, posts)] == ["p1"]


def test_a_failure_of_the_database_stores_nothing_and_blames_no_row(database: Database) -> None:
    with database.engine.begin() as connection:
        connection.execute(text("DROP TABLE comments"))
    with pytest.raises(StorageError, match="its tables are not those that Trawl made"):
        write(database, post(), comment())
    assert rows(database, posts) == []


def test_states_in_any_order_and_in_any_batches_lead_to_the_same_rows(database: Database) -> None:
    generator = random.Random(7)
    states = [
        post(f"p{n % 20}", title=str(minute), fetched_at=at(minute))
        for minute, n in enumerate(generator.choices(range(1000), k=300))
    ]
    newest = {state["id"]: state["title"] for state in states}  # in order of time: the last one of each id stays
    for _ in range(3):
        shuffled = generator.sample(states, len(states))
        for start in range(0, 300, 70):
            write(database, *shuffled[start : start + 70])
    assert {row["id"]: row["title"] for row in rows(database, posts)} == newest


def test_what_only_the_list_says_of_a_thread_is_stored_and_stays(database: Database) -> None:
    write(database, post(reply_count=2, last_reply_at=at(5), author="ada", fetched_at=at(10)))
    write(database, post(title="edited", reply_count=None, last_reply_at=None, created_at=None, author=None, fetched_at=at(20)))
    [stored] = rows(database, posts)
    assert (stored["title"], stored["reply_count"], stored["author"]) == ("edited", 2, "ada")
    assert (stored["created_at"], stored["last_reply_at"]) == (START, START + timedelta(minutes=5))


def test_a_reading_that_begins_behind_the_first_page_brings_the_lists_count(database: Database) -> None:
    write(database, post(fetched_at=at(10)), check(finished_at=at(11)))
    write(database, check(mode="changed", started_at=at(20), finished_at=at(21), reply_count=7, last_reply_at=at(19)))
    [stored] = rows(database, posts)
    assert (stored["reply_count"], stored["last_reply_at"]) == (7, START + timedelta(minutes=19))
    write(database, check(mode="changed", started_at=at(12), finished_at=at(13), reply_count=3, last_reply_at=at(12)))
    assert rows(database, posts)[0]["reply_count"] == 7, "an older report that comes late changes nothing"
    write(database, check(started_at=at(30), finished_at=at(31)))
    assert rows(database, posts)[0]["reply_count"] == 7, "one that knows of no list leaves it"
