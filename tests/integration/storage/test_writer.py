"""The writer moves the item stream into the database: everything once, bad items aside, scans end their pending marks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
import redis

from forums.records.stored import Item
from forums.storage import Database, comments, posts, scans
from forums.writer.store import Outcome, drain
from redis_components.items.stream import ItemStream, newest
from redis_components.keys import CrawlKeys
from tests.support.items import at, comment, post, scan, wire

KEYS = CrawlKeys.for_spider("forum_detail")


@pytest.fixture
def stream(redis_client: redis.Redis) -> ItemStream:
    return ItemStream(redis_client, KEYS)


def send(client: redis.Redis, *items: dict[str, Any] | bytes) -> None:
    client.rpush(KEYS.item_stream(), *(item if isinstance(item, bytes) else wire(item) for item in items))


def ids(database: Database, table: Any) -> list[str]:
    return [row.id for row in database.stream(table.select().order_by(table.c.id))]


def reasons(client: redis.Redis) -> list[str]:
    return [one.reason for one in newest(client, KEYS, 10_000)[0]][::-1]


def test_an_empty_stream_is_nothing_to_do(stream: ItemStream, database: Database) -> None:
    report = drain(stream, database)
    assert (report.outcome, report.items) == (Outcome.EMPTY, 0)


def test_everything_in_the_stream_ends_up_in_the_database(
    redis_client: redis.Redis, stream: ItemStream, database: Database
) -> None:
    send(redis_client, comment("c1"), post("p1"), scan("f1"), post("p2"), comment("c2"))
    report = drain(stream, database)
    assert (report.outcome, report.items, report.refused) == (Outcome.EMPTY, 5, 0)
    assert (ids(database, posts), ids(database, comments)) == (["p1", "p2"], ["c1", "c2"])
    assert redis_client.keys() == []  # the stream is empty and the lock is given back


def test_batches_follow_each_other_until_the_stream_is_empty(
    redis_client: redis.Redis, stream: ItemStream, database: Database
) -> None:
    send(redis_client, *(post(f"p{n:03}") for n in range(250)))
    report = drain(stream, database, batch=100)
    assert (report.outcome, report.items) == (Outcome.EMPTY, 250)
    assert ids(database, posts) == [f"p{n:03}" for n in range(250)]


def test_when_its_time_is_spent_the_rest_waits(redis_client: redis.Redis, stream: ItemStream, database: Database) -> None:
    send(redis_client, *(post(f"p{n:03}") for n in range(250)))
    report = drain(stream, database, batch=100, budget_s=0)
    assert (report.outcome, report.items) == (Outcome.BUDGET, 100)
    assert (len(stream), len(ids(database, posts))) == (150, 100)
    assert drain(stream, database).outcome is Outcome.EMPTY


def test_a_bad_item_is_set_aside_and_its_neighbours_are_stored(
    redis_client: redis.Redis, stream: ItemStream, database: Database
) -> None:
    send(redis_client, post("p1"), b"\xff not JSON", post("p2", views="many"), {"kind": "photo"}, post("p3"))
    report = drain(stream, database)
    assert (report.items, report.refused) == (2, 3)
    assert ids(database, posts) == ["p1", "p3"]
    assert len(stream) == 0
    assert reasons(redis_client) == [
        "not JSON: JSON is malformed: invalid character (byte 0)",
        "views: Expected int | null, got str; the value is 'many'",
        "kind: 'photo' is unknown; known are 'post', 'comment', 'forum', 'scan' and 'check'",
    ]


def test_a_batch_of_nothing_but_bad_items_does_not_stop_the_stream(
    redis_client: redis.Redis, stream: ItemStream, database: Database
) -> None:
    send(redis_client, *(b"bad" for _ in range(150)), post("p1"))
    assert drain(stream, database, batch=100).refused == 150
    assert ids(database, posts) == ["p1"]


def test_a_row_that_the_database_refuses_is_set_aside_with_its_reason(
    redis_client: redis.Redis, stream: ItemStream, database: Database
) -> None:
    send(redis_client, post("p1"), post("p2", created_at="0001-01-01T00:00:00+05:00"), post("p3"))
    report = drain(stream, database)
    assert (report.items, report.refused) == (2, 1)
    assert reasons(redis_client) == ["the database refused it: date value out of range"]
    assert json.loads(newest(redis_client, KEYS, 1)[0][0].payload)["id"] == "p2"


def test_a_finished_scan_ends_the_pending_mark_of_its_forum_only(
    redis_client: redis.Redis, stream: ItemStream, database: Database
) -> None:
    redis_client.hset(KEYS.pending(), mapping={"demo/f1": 1, "demo/f2": 2, "demo/f3": 3, "other/f1": 4})
    send(redis_client, scan("f1"), post(), scan("f2", outcome="failed", reason="404"))
    drain(stream, database)
    assert sorted(redis_client.hkeys(KEYS.pending())) == [b"demo/f3", b"other/f1"]
    assert [row.outcome for row in database.stream(scans.select().order_by(scans.c.forum_id))] == ["complete", "failed"]


def test_a_scan_report_that_is_bad_ends_the_pending_mark_too(
    redis_client: redis.Redis, stream: ItemStream, database: Database
) -> None:
    redis_client.hset(KEYS.pending(), mapping={"demo/f1": 1, "demo/f2": 2})
    send(redis_client, scan("f1", pages="many"))
    assert drain(stream, database).refused == 1
    assert redis_client.hkeys(KEYS.pending()) == [b"demo/f2"]


def test_a_second_writer_returns_at_once(redis_client: redis.Redis, stream: ItemStream, database: Database) -> None:
    send(redis_client, post())
    ItemStream(redis_client, KEYS).lock("somebody else")
    report = drain(stream, database)
    assert (report.outcome, report.items) == (Outcome.BUSY, 0)
    assert len(stream) == 1
    assert redis_client.get(KEYS.writer()) == b"somebody else|0"


def test_a_stream_that_is_written_twice_counts_twice_and_is_stored_once(
    redis_client: redis.Redis, stream: ItemStream, database: Database
) -> None:
    send(redis_client, post("p1", fetched_at=at(1)), post("p1", fetched_at=at(2)), post("p1", fetched_at=at(1)))
    assert drain(stream, database).items == 3
    assert ids(database, posts) == ["p1"]


def test_what_was_stored_is_told_before_it_leaves_the_stream(
    redis_client: redis.Redis, stream: ItemStream, database: Database
) -> None:
    send(redis_client, post("p1"), b"{", comment("c1"), scan("f1"))
    told: list[tuple[list[str], int, int]] = []

    def after(items: Sequence[Item]) -> None:
        told.append(([type(item).__name__ for item in items], len(ids(database, posts)), len(stream)))

    drain(stream, database, after=after)
    assert told == [(["Post", "Comment", "Scan"], 1, 4)]


def test_a_listener_that_fails_does_not_keep_items_in_the_stream(
    redis_client: redis.Redis, stream: ItemStream, database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    def after(items: Sequence[Item]) -> None:
        raise KeyError("token")

    send(redis_client, post("p1"))
    assert drain(stream, database, after=after).items == 1
    assert "a hook failed for 1 stored items" in caplog.text


def test_when_redis_fails_the_listener_the_items_stay(redis_client: redis.Redis, stream: ItemStream, database: Database) -> None:
    def after(items: Sequence[Item]) -> None:
        raise redis.ConnectionError("gone")

    send(redis_client, post("p1"))
    with pytest.raises(redis.ConnectionError):
        drain(stream, database, after=after)
    assert len(stream) == 1
    assert drain(stream, database).items == 1
