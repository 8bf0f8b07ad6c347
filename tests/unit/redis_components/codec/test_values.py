"""What comes back is what went in, with the same types; or it is refused with the field's name."""

from __future__ import annotations

from collections import namedtuple
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from redis_components.codec import values
from redis_components.errors import Undecodable, Unserializable

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"]))
    | st.binary()
    | st.dates()
    | st.datetimes(timezones=st.none() | st.just(UTC) | st.just(timezone(timedelta(hours=5, minutes=30))))
    | st.times()
    | st.timedeltas()
    | st.decimals(allow_nan=False)
    | st.uuids()
)
HASHABLE = SCALARS | st.tuples(SCALARS) | st.frozensets(st.integers())
VALUES = st.recursive(
    HASHABLE | st.binary().map(bytearray),
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner)
        | st.dictionaries(st.integers() | st.binary() | st.tuples(st.integers()), inner)
        | st.sets(st.integers() | st.text(st.characters(exclude_categories=["Cs"])))
    ),
    max_leaves=15,
)


def round_trip(value: Any) -> Any:
    return values.loads(values.dumps({"v": values.exact(value, "meta")}))["v"]


def shape(value: Any) -> Any:
    """The value with the types of everything in it."""
    if isinstance(value, dict):
        return dict, tuple((shape(key), shape(item)) for key, item in value.items())
    if isinstance(value, list | tuple):
        return type(value), tuple(shape(item) for item in value)
    if isinstance(value, set | frozenset):
        return type(value), frozenset(shape(item) for item in value)
    return type(value), bytes(value) if isinstance(value, bytearray) else repr(value)


@given(VALUES)
def test_every_value_it_accepts_comes_back_with_the_same_type_and_content(value: Any) -> None:
    assert shape(round_trip(value)) == shape(value)


class Colour(Enum):
    RED = 1


class Text(str):
    __slots__ = ()


Point = namedtuple("Point", "x y")  # the untyped kind is what users have


@pytest.mark.parametrize(
    "value",
    [
        Colour.RED,
        Text("a"),
        Point(1, 2),
        object(),
        lambda: 0,
        "\ud800",
        datetime(2026, 1, 1, tzinfo=ZoneInfo("Europe/Berlin")),
        [{"deep": {1, Colour.RED}}],
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_value_that_would_change_is_refused_with_the_field_that_holds_it(value: Any) -> None:
    with pytest.raises(Unserializable, match="cannot store"):
        values.dumps({"t": values.exact({"field": value}, "meta")})


def test_the_refusal_names_the_path() -> None:
    with pytest.raises(Unserializable, match=r"meta\['a'\]\[1\]\['b'\]: cannot store .*Colour exactly"):
        values.exact({"a": [0, {"b": Colour.RED}]}, "meta")


@pytest.mark.parametrize(
    "payload", [b"", b"\x02\x80", b"\x01\xff\xff", b"\x01\x93", b"\x01\xc7\x01\x63\x00", b"\x80\x04\x95junk", b"\x01\x01"]
)
def test_a_payload_that_is_foreign_or_broken_is_undecodable(payload: bytes) -> None:
    with pytest.raises(Undecodable):
        values.loads(payload)


def test_types_that_compare_equal_are_kept_apart() -> None:
    value = {"a": (1, 1.0, True), "b": date(2026, 1, 1), "c": time(1, 2), "d": Decimal("1.10")}
    back = round_trip(value)
    assert [type(item) for item in back["a"]] == [int, float, bool]
    assert str(back["d"]) == "1.10"


def test_the_text_of_a_link_is_stored_as_text() -> None:
    text = etree.XPath("string()", smart_strings=True)(etree.fromstring("<a>next</a>"))
    assert type(text) is not str
    stored = round_trip({"link_text": text, "rule": 0, "all": [text]})
    assert stored == {"link_text": "next", "rule": 0, "all": ["next"]}
    assert type(stored["link_text"]) is type(stored["all"][0]) is str
