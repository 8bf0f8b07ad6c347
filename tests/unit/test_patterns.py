"""Text costs what its length costs: each regular expression of the tree, on texts made from its own parts.

No clock: `tests/support/regex_steps.py` counts the steps of `re`. What a new call of `re` or `regex` is given is found in the
source, so a new expression is measured without being named here.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from tests.support import pattern_ledger
from tests.support.other_patterns import BUILT, as_expression, built, of_lua, of_profiles
from tests.support.pattern_growth import Growth, growth_of
from tests.support.pattern_ledger import not_linear
from tests.support.product_patterns import Use, of_product
from tests.support.regex_steps import StepCounter, TooManySteps, deep_calls


@pytest.mark.thorough  # where the ledger knows few of them
def test_each_expression_of_the_product_costs_what_the_length_of_its_text_costs() -> None:
    """Bound the repeat, make it possessive (`++`), begin it once (`(?<!...)`), or cut the text first."""
    uses, functions = of_product()
    assert len(uses) > 300
    assert not not_linear(uses)
    assert functions == sorted(BUILT), "say in tests/support/other_patterns.py what a new function builds"
    assert not not_linear(built(functions))


@pytest.mark.parametrize("changed", [{"pattern": r"\d+x"}, {"flags": re.IGNORECASE}, {"modes": ("search",)}])
def test_the_ledger_spares_what_was_measured_as_it_is_and_nothing_else(
    changed: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    measured = Use("a.py:_A", r"\d*+x", 0, ("match",))
    seen = []
    monkeypatch.setenv("SHORT_TESTS", "1")
    monkeypatch.setattr(pattern_ledger, "_known", lambda: {pattern_ledger.digest(measured)})
    monkeypatch.setattr(pattern_ledger, "growth_of", lambda *given: seen.append(given) or Growth(1.0, 1.0))
    assert not_linear([measured, replace(measured, **changed)]) == []
    assert len(seen) == 1
    monkeypatch.delenv("SHORT_TESTS")
    assert not_linear([measured]) == []
    assert len(seen) == 2


def test_each_pattern_of_lua_costs_what_the_length_of_its_text_costs() -> None:
    uses = of_lua()
    assert len(uses) > 40
    assert not not_linear(uses)


def test_expressions_of_profiles_are_measured_too() -> None:
    """They need not be linear: the package `regex` searches them, within a time (forum_reader/test_site_patterns.py)."""
    uses = of_profiles()
    assert len(uses) > 150
    for use in uses:
        StepCounter(use.pattern, use.flags)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"(a|ab)(c|bcd)(d*)$", "abcd"),
        (r"(?P<quote>['\"]).*?(?P=quote)", "x'abc' \"d\""),
        (r"(?<!\d)\d{1,3}(?=\s+[^\W\d]{3})", "12 abc 1234 abc 7 xyz"),
        (r"\b(a*)*b|(?:x*?y)++z", "aaab xxyxyz"),
        (r"(?i)(?>(a|ab))c|^STRA\b", "strA abc ac"),
        (r"(?ms)^.{2,3}?$|\Bz\Z", "ab\nabc\nabcd\nyz"),
        (r"(?:(a)|b)*c\1", "abcabaca"),
        (r"[^\s:/@'\"]{0,4}:[^\s/@'\"]{1,5}@", "://user:pass@host"),
    ],
)
def test_the_counter_finds_what_re_finds(pattern: str, text: str) -> None:
    counter = StepCounter(pattern)
    for mode in ("match", "fullmatch", "search"):
        found = getattr(re, mode)(pattern, text)
        assert counter.run(mode, text) == ([found.span()] if found else []), mode
    assert counter.run("finditer", text) == [found.span() for found in re.finditer(pattern, text)]


@pytest.mark.parametrize(
    ("pattern", "mode", "is_linear"),
    [
        (r"\d+", "search", True),
        (r"\d+x", "match", True),
        (r"\d+x", "search", False),
        (r"(?<!\d)\d++x", "search", True),
        (r"\s+$", "search", False),
        (r"(a|aa)+$", "match", False),
        (r"<[^>]*>", "finditer", False),
        (r"<[^<>]*>", "finditer", True),
        (r"<script.*?</script>", "search", False),
        (r'"(?:[^"\\]|\\.)*"', "finditer", False),
        (r"<!--\s*(.{1,80}?)\s*-->", "search", False),
        (r"(?:a{1,40}){1,40}$", "search", False),
        (r"\[(?:\s*\w+\s*,?)*\]", "fullmatch", False),
    ],
)
def test_growth_is_found_in_texts_of_the_patterns_own_parts(pattern: str, mode: str, is_linear: bool) -> None:
    with deep_calls():
        assert growth_of(pattern, 0, (mode,)).is_linear == is_linear


def test_the_counter_ends_at_its_cap() -> None:
    with deep_calls(), pytest.raises(TooManySteps):
        StepCounter(r"(?:a|aa)+$").run("search", "a" * 60 + "b", cap=10_000)


def test_a_pattern_of_lua_is_read_as_an_expression() -> None:
    assert as_expression("^%s*%a[%w+.-]*://([^/?#%s]+)") == r"(?s:^[\s]*[A-Za-z][A-Za-z0-9+.-]*://([^/?#\s]+))"
    assert as_expression("^-?%d+$") == r"(?s:^\-?[0-9]+$)"
