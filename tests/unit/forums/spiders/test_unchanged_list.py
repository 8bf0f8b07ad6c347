"""When an unchanged first page is the end of a scan, and when it has to be read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from forums.records.stored import FrontRow, Marks
from forums.spiders.forum_list import finished
from forums.spiders.scan_plan import begun
from forums.state.database_state import ThreadRecord

NOW = datetime(2026, 11, 23, tzinfo=UTC)
MARKS = Marks(
    scanned_at=NOW, newest=NOW, until=NOW, front=tuple(FrontRow(f"t{n}", f"k{n}", NOW - timedelta(hours=n), "") for n in range(3))
)
STATE = begun(mode="scan", limit=5, read_all=False, since=None)


def records(**changed: Any) -> dict[str, ThreadRecord | None]:
    return {f"t{n}": ThreadRecord(f"k{n}") for n in range(3)} | changed


def test_a_scan_ends_with_what_the_last_complete_one_saw() -> None:
    ended = finished(STATE, MARKS, records(), order="activity", file="f")
    assert ended is not None
    assert (ended.pages, ended.threads, ended.new, ended.changed, ended.front) == (1, 3, 0, 0, MARKS.front)
    assert (ended.newest_at, ended.oldest_at) == (NOW, NOW - timedelta(hours=2))


@pytest.mark.parametrize(
    ("marks", "state", "order"),
    [
        (None, {}, "activity"),
        ({"front": ()}, {}, "activity"),
        ({"failed_pages": 1}, {}, "activity"),
        ({"until": NOW - timedelta(days=1)}, {}, "activity"),
        ({"newest": None, "until": None}, {}, "activity"),
        ({}, {"mode": "deep"}, "activity"),
        ({}, {"read_all": True}, "activity"),
        ({}, {}, "created"),
    ],
)
def test_a_page_is_read_where_the_scan_before_left_something(marks: dict[str, Any] | None, state: Any, order: Any) -> None:
    before = None if marks is None else msgspec.structs.replace(MARKS, **marks)
    assert finished(msgspec.structs.replace(STATE, **state), before, records(), order=order, file="f") is None


@pytest.mark.parametrize("stored", [None, ThreadRecord("other"), ThreadRecord("k1", short=1)])
def test_a_page_is_read_where_one_of_its_threads_is_not_stored_as_it_is(stored: ThreadRecord | None) -> None:
    assert finished(STATE, MARKS, records(t1=stored), order="activity", file="f") is None
