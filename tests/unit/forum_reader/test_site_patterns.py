"""Each place that searches with an expression of an operator ends it: `(a|aa)+$` needs some 10^12 steps for 60 letters.

Event rules: `test_a_regular_expression_that_takes_too_long_is_undecided` in `events/test_expression.py`.
"""

from __future__ import annotations

import pytest

from forum_reader.definition import selectors
from forum_reader.draft import boards
from forum_reader.errors import UnreadablePage
from forum_reader.reading import found_values, parse_body
from forum_reader.recognise import recognise

EVIL = "(?:a|aa)+$"
TEXT = "a" * 60 + "b"


@pytest.fixture(autouse=True)
def _a_short_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time itself is not measured: a tenth of it shows as well that there is an end."""
    monkeypatch.setattr(parse_body, "REGEX_S", 0.05)
    monkeypatch.setattr(recognise, "_MOST_S", 0.05)


@pytest.mark.thorough
def test_the_expression_of_a_field_ends() -> None:
    with pytest.raises(UnreadablePage, match="regular expression"):
        found_values.matched_part(EVIL, TEXT)


def test_the_expression_of_a_field_ends_on_a_short_text() -> None:
    """Sixteen characters were searched without a time: four alternatives need 10^9 steps there."""
    with pytest.raises(UnreadablePage, match="regular expression"):
        found_values.matched_part("(?:a|a|a|a)+$", "a" * 15 + "b")


def test_an_expression_within_an_xpath_ends() -> None:
    with pytest.raises(UnreadablePage):
        selectors._test(None, TEXT, EVIL)


def test_marks_and_the_base_of_a_profile_end() -> None:
    class Marks:
        def of(self, _: str) -> set[str]:
            return set()

        def lines(self, _: str) -> str:
            return TEXT

    page = recognise._Page(Marks())  # type: ignore[arg-type]
    assert page.has("script a+b")
    assert not page.has(f"script {EVIL}")
    assert list(recognise._found(EVIL, TEXT)) == []


def test_the_forum_of_a_profile_ends() -> None:
    pattern = boards._forum_pattern({"recognise": {"forum": EVIL}})
    assert pattern is not None
    assert boards._forum_of(f"https://forum.example/{TEXT}", "https://forum.example", pattern) is None
