"""Several states of one thing in one batch."""

from __future__ import annotations

from datetime import UTC, datetime

from workers.storage.tables import posts
from workers.storage.upsert import _Row, versions


def row(place: int, key: str, minute: int) -> _Row:
    return _Row(place=place, values={"site": "demo", "id": key, "fetched_at": datetime(2026, 1, 1, 0, minute, tzinfo=UTC)})


def test_each_key_has_its_rows_oldest_first_and_keys_are_in_order() -> None:
    found = versions(posts, [row(0, "p2", 5), row(1, "p1", 3), row(2, "p2", 1), row(3, "p2", 9)])
    assert [(key[1], [r.place for r in rows]) for key, rows in found.items()] == [("p1", [1]), ("p2", [2, 0, 3])]


def test_of_two_rows_of_the_same_time_the_later_arrival_is_the_newer() -> None:
    found = versions(posts, [row(0, "p1", 5), row(1, "p1", 5)])
    assert [r.place for r in found["demo", "p1"]] == [0, 1]
