"""Items are checked when they are read: a good one becomes a record, a bad one a reason that names field and value."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from forums.records.stored import Check, Comment, Forum, InvalidItem, Post, Scan
from forums.records.tasks_and_items import task_of_scan
from forums.storage import parse
from tests.support.items import at, check, comment, forum, post, scan, wire


def test_each_kind_of_item_becomes_its_record() -> None:
    assert isinstance(parse(wire(post())), Post)
    assert isinstance(parse(wire(comment())), Comment)
    assert isinstance(parse(wire(scan())), Scan)
    assert isinstance(parse(wire(forum())), Forum)
    assert isinstance(parse(wire(check())), Check)


def test_times_become_aware_datetimes_of_the_same_moment() -> None:
    item = parse(wire(post(fetched_at="2026-01-01T12:00:00+02:00")))
    assert isinstance(item, Post)
    assert item.fetched_at == datetime(2026, 1, 1, 10, tzinfo=UTC)


def test_fields_that_are_not_known_are_ignored() -> None:
    assert parse(wire(post(mood="sunny"))) == parse(wire(post()))


@pytest.mark.parametrize("field", ["author", "created_at", "views", "reply_count", "last_reply_at"])
def test_what_a_site_may_hide_may_be_null(field: str) -> None:
    assert getattr(parse(wire(post(**{field: None}))), field) is None


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        (post(kind="photo"), "kind: 'photo' is unknown; known are 'post', 'comment', 'forum', 'scan' and 'check'"),
        (post(kind=7), "kind: 7 is unknown; known are 'post', 'comment', 'forum', 'scan' and 'check'"),
        ({"site": "demo"}, "Object missing required field kind"),
        ({name: value for name, value in post().items() if name != "url"}, "Object missing required field url"),
        (post(id=12), "id: Expected str, got int; the value is 12"),
        (post(id=""), "id: Expected str of length >= 1; the value is ''"),
        (post(title=None), "title: Expected str, got null; the value is None"),
        (post(views="many"), "views: Expected int | null, got str; the value is 'many'"),
        (post(views=2**63), "views: Expected int <= 9223372036854775807; the value is 9223372036854775808"),
        (post(created_at="yesterday"), "created_at: Invalid RFC3339 encoded datetime; the value is 'yesterday'"),
        (
            post(fetched_at="2026-01-01T00:00:00"),
            "fetched_at: Expected datetime with a timezone component; the value is '2026-01-01T00:00:00'",
        ),
        (scan(outcome="so so"), "outcome: Invalid enum value 'so so'; the value is 'so so'"),
        ([], "Expected object, got array"),
    ],
)
def test_a_bad_item_gets_a_reason_that_names_field_and_value(item: Any, reason: str) -> None:
    with pytest.raises(InvalidItem) as caught:
        parse(wire(item))
    assert str(caught.value) == reason


@pytest.mark.parametrize("payload", [b"", b"{", b"\xff\xfe", wire(post())[:-1], b'{"title": "\xff"}', b'{"x": ' + b"[" * 100_000])
def test_bytes_that_are_no_json_object_are_refused(payload: bytes) -> None:
    with pytest.raises(InvalidItem):
        parse(payload)


def test_a_long_value_is_cut_in_the_reason() -> None:
    with pytest.raises(InvalidItem) as caught:
        parse(wire(post(id="x" * 10_000)))
    assert len(str(caught.value)) < 200


# The first text that Hypothesis draws loads its table of characters, which is slow on a busy machine.
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.binary(max_size=200) | st.dictionaries(st.sampled_from(sorted(post())), st.none() | st.text() | st.integers()).map(wire)
)
@example(b'{"kind":"\\n"')
def test_whatever_is_in_the_stream_is_either_an_item_or_a_reason(payload: bytes) -> None:
    try:
        found = str(parse(payload))
    except InvalidItem as error:
        found = str(error)
    assert "\n" not in found


def test_the_task_of_a_scan_is_known_even_when_its_report_is_bad() -> None:
    assert task_of_scan(wire(scan("f7", finished_at=None))) == "demo/f7"


@pytest.mark.parametrize("item", [post(), scan(forum_id=None), scan(site=3), [], "scan"])
def test_what_is_no_scan_report_has_no_task(item: Any) -> None:
    assert task_of_scan(wire(item)) is None


def test_the_reason_of_a_failed_scan_is_kept() -> None:
    item = parse(wire(scan(outcome="failed", reason="503 three times", finished_at=at(2))))
    assert isinstance(item, Scan)
    assert item.reason == "503 three times"
