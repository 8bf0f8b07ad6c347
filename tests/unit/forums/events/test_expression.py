"""Filters: keywords of any language, regular expressions within a bound, boolean operators."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from forums.events.expression import Subject, Undecided, parse
from forums.storage.event_reader import Event
from redis_components.errors import ConfigError


def event(**changes: Any) -> Event:
    known = {"type": "new", "row": "post", "site": "demo", "thread": "p1", "item": "p1", "version": 1, "forum": "12"}
    fixed = {"id": "demo/post/p1@1", "position": "1-0", "stored_at": datetime(2026, 1, 1, tzinfo=UTC)}
    return Event(**(fixed | known | changes))


def fits(expression: str, **changes: Any) -> bool:
    return parse(expression).matches(Subject(event(**changes)))


@pytest.mark.parametrize(
    ("expression", "text", "expected"),
    [
        ("cat", "a Cat, two", True),
        ("cat", "concatenate cats", False),
        ("cat*", "two cats", True),
        ("cat", "我的cat很好", True),
        ("显卡", "新显卡到货了", True),
        ("显卡", "新显示器", False),
        ("gpu", "新ＧＰＵ到货", True),  # full width
        ("カメラ", "新しいカメラです", True),
        ("STRASSE", "die Straße hinunter", True),
        ("naïve", "a nai\u0308ve idea", True),  # decomposed
        ('"price  drop"', "a price\n drop today", True),
        ('"price drop"', "price did drop", False),
        ("c++", "I like C++, and C", True),
        (".net", "ASP.NET", True),
        ("/rtx ?50\\d0/", "an RTX 5090 here", True),
        ("/a\\/b/", "path a/b", True),
        ('"say \\"hi\\""', 'they say "hi" now', True),
    ],
)
def test_keywords_and_regular_expressions(expression: str, text: str, expected: bool) -> None:
    assert fits(expression, text=text) is expected
    assert fits(expression, title=text) is expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("apple or pear and plum", True),  # `and` first
        ("(apple or pear) and plum", False),
        ("not plum apple", True),  # `and` left out
        ("not (plum or apple)", False),
        ("not not apple", True),
        ("title:apple", False),
        ("text:apple title:fruit", True),
        ("author:ann", True),
        ("author:/^ann/", True),
        ("author:an", False),
        ("site:demo forum:12 type:new row:post", True),
        ("site:dem", False),
        ('forum:"12"', True),
        ("APPLE AND NOT PLUM", True),
        ('"and" or apple', True),
    ],
)
def test_fields_and_operators(expression: str, expected: bool) -> None:
    assert fits(expression, title="Fruit", text="an apple", author="Ann Lee") is expected


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("", "empty"),
        ("a or", "missing here"),
        ("(a", "not closed"),
        ("a)", "missing before it"),
        ('"a', "not closed"),
        ("autor:x", "did you mean .author"),
        ("type:neu", "did you mean .new"),
        ("/(/", "regular expression is wrong"),
        (f"/{'(' * 1_000}{')' * 1_000}/", "brackets are nested too deep"),
        ("*", "keyword is empty"),
        ("site:/x/", "needs a word"),
        ("(" * 51 + "a" + ")" * 51, "more than 50 levels"),
        ("not " * 60 + "a", "more than 50 levels"),
        ("a" * 4001, "4,000 characters at most"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(expression: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        parse(expression)


def test_a_regular_expression_that_takes_too_long_is_undecided() -> None:
    with pytest.raises(Undecided):
        fits("/(a|aa)+$/", text="a" * 5000 + "b")


def test_an_event_without_texts_matches_no_keyword() -> None:
    assert not fits("apple", text=None, title=None, author=None)
    assert fits("not author:bob", author=None)
