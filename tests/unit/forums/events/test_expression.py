"""Filters: keywords of any language, regular expressions within a bound, boolean operators."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from forums.events.expression import JudgingTime, Subject, Undecided, parse
from forums.events.rules import Rules
from forums.storage.read.event_reader import Event
from redis_components.errors import ConfigError
from tests.support.event_rules import rules_of


def event(**changes: Any) -> Event:
    known = {"type": "new", "row": "post", "site": "demo", "thread": "p1", "item": "p1", "version": 1, "forum": "12"}
    fixed = {"id": "demo/post/p1@1", "position": "1-0", "stored_at": datetime(2026, 1, 1, tzinfo=UTC)}
    return Event(**(fixed | known | changes))


def fits(expression: str, **changes: Any) -> bool:
    return parse(expression)(Subject(event(**changes)))


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


HOSTILE = "a" * 5000 + "b"
RULES = """
[rules.slow]
match = "/(a|aa)+$/"
[rules.word]
match = "apple"
[outputs.x]
kind = "file"
path = "x"
rules = ["slow", "word"]
"""


class Clock:
    """Processor time that passes by hand: so much at each look."""

    def __init__(self, step_s: float) -> None:
        self.now, self.step_s = 0.0, step_s

    def __call__(self) -> float:
        self.now += self.step_s
        return self.now


def judged(rules: Rules, events: list[Event], judging: JudgingTime) -> tuple[int, list[tuple[str, list[str], list[str]]]]:
    looked_at, wanted = rules.judged(rules.outputs["x"], events, judging)
    return looked_at, [(one.item, one.rules, one.undecided) for one in wanted]


def test_a_site_whose_time_is_spent_delays_no_other_and_none_of_its_events_is_lost() -> None:
    judging = JudgingTime(0.5)  # of which a site has 0.1 s: two such texts at the most
    hostile = [event(site="evil", item=f"e{n}", text=f"apple {HOSTILE}") for n in range(400)]
    looked_at, wanted = judged(rules_of(RULES), [*hostile, event(item="p", text="apple")], judging)
    assert looked_at == 401  # nearly all of these without a search
    assert wanted == [*((f"e{n}", ["word"], ["slow"]) for n in range(400)), ("p", ["word"], [])]
    assert judging.undecided == {("slow", "evil"): 400}


def test_an_output_leaves_out_what_was_written_before_a_day() -> None:
    since = rules_of(RULES.replace('"word"]', '"word"]\nwritten_since = 2026-03-01\nkinds = ["post", "fleet", "gap"]'))
    ages = {"old": datetime(2026, 2, 27, tzinfo=UTC), "day before": datetime(2026, 2, 28, tzinfo=UTC), "none": None}
    events = [event(item=name, text="apple", created_at=at, row="post", type="new") for name, at in ages.items()]
    others = [
        event(item="edit", text="apple", created_at=ages["old"], row="post", type="edited"),
        event(item="board", text="apple", created_at=ages["old"], row="fleet", type="changed"),
    ]
    _, wanted = judged(since, [*events, *others], JudgingTime())
    assert [item for item, *_ in wanted] == ["day before", "none", "edit", "board"]
    with pytest.raises(ConfigError, match=r"outputs\.x\.written_since"):
        rules_of(RULES.replace('"word"]', '"word"]\nwritten_since = "soon"'))


def test_a_round_ends_within_a_batch_behind_what_it_looked_at_and_looks_at_one_event_at_least() -> None:
    events = [event(item=f"p{n}", text="apple") for n in range(9)]
    assert judged(rules_of(RULES), events, JudgingTime(3.5, Clock(0.5)))[0] == 3
    assert judged(rules_of(RULES), events, JudgingTime(0.0))[0] == 1
