"""Items as JSON: quick for plain ones, and always what Scrapy's own encoder means."""

from __future__ import annotations

import dataclasses
import json
import math
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import IntEnum
from typing import Any
from uuid import UUID

import pytest
import scrapy
from hypothesis import example, given
from hypothesis import strategies as st
from scrapy.settings import Settings
from scrapy.utils.serialize import ScrapyJSONEncoder
from twisted.internet.defer import Deferred

from redis_components.errors import ConfigError
from redis_components.pipelines import RedisPipeline, default_serialize

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters())
    | st.dates()
    | st.datetimes(timezones=st.none() | st.just(UTC))
    | st.times()
    | st.decimals()
    | st.sets(st.text(), max_size=1)
)
KEYS = st.text() | st.integers() | st.booleans() | st.none() | st.floats(allow_nan=False)
ITEMS = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(KEYS, inner), max_leaves=10
)


class Post(scrapy.Item):
    title = scrapy.Field()
    when = scrapy.Field()


@dataclasses.dataclass
class Comment:
    text: str
    at: datetime


class Level(IntEnum):
    HIGH = 3


class Text(str):
    __slots__ = ()


def same(one: Any, other: Any) -> bool:
    """Equal, and of equal types; NaN equals itself."""
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one):
        return math.isnan(other)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(map(same, one.values(), other.values()))
    return type(one) is type(other) and one == other


@given(ITEMS)
@example({"emoji": "\N{PILE OF POO}", "surrogate": "\ud800", "zero": "\0", "slash": "</script>"})
@example([2**64, -(2**63) - 1, 1e22, 5e-324, -0.0, 0.1 + 0.2])
@example({"a": math.nan, "b": math.inf, "c": -math.inf})
@example({0: "a", None: "b", True: "c", 1.5: "d"})
def test_every_item_reads_back_as_from_scrapys_encoder(item: Any) -> None:
    assert same(json.loads(default_serialize(item)), json.loads(ScrapyJSONEncoder().encode(item)))


@pytest.mark.parametrize(
    "item",
    [
        Post(title="a", when=datetime(2026, 1, 31, 12, tzinfo=UTC)),
        Comment(text="a", at=datetime(2026, 1, 31, 12)),
        {"post": Post(title="a"), "comments": [Comment(text="b", at=datetime(2026, 1, 31, 12, 0, 0, 5))]},
        {"request": scrapy.Request("http://127.0.0.1/", method="POST"), "response": scrapy.http.Response("http://127.0.0.1/")},
        {
            "level": Level.HIGH,
            "text": Text("a"),
            "price": Decimal("1.10"),
            "day": date(2026, 1, 31),
            "time": time(12, tzinfo=UTC),
        },
        {Text("key"): {Level.HIGH}},
    ],
    ids=lambda item: type(item).__name__,
)
def test_what_is_not_plain_is_written_by_scrapys_encoder(item: Any) -> None:
    assert default_serialize(item) == ScrapyJSONEncoder().encode(item)


def test_a_deferred_is_shown() -> None:
    assert "Deferred" in json.loads(default_serialize({"later": Deferred()}))["later"]


@pytest.mark.parametrize(
    "value", [b"bytes", UUID(int=1), timedelta(1), frozenset({1}), object()], ids=lambda value: type(value).__name__
)
def test_what_scrapys_encoder_refuses_is_refused(value: Any) -> None:
    with pytest.raises(TypeError):
        default_serialize({"value": value})


def test_an_item_that_holds_itself_is_refused() -> None:
    item: dict[str, Any] = {}
    item["self"] = item
    with pytest.raises((ValueError, RecursionError)):
        default_serialize(item)


def test_a_crawl_that_names_consumer_groups_is_refused_in_one_line() -> None:
    with pytest.raises(ConfigError, match="REDIS_ITEMS_GROUPS: items have no consumer groups any more"):
        RedisPipeline.from_settings(Settings({"REDIS_ITEMS_GROUPS": ["files"]}))
