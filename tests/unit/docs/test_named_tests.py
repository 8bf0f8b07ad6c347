"""Each test that docs/security.md and docs/guarantees.md name is there: a promise without its test is none."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
TESTS = ROOT / "tests"


@cache
def files() -> frozenset[str]:
    return frozenset(path.relative_to(ROOT).as_posix() for path in TESTS.rglob("*.py"))


@cache
def functions() -> frozenset[str]:
    return frozenset(name for path in TESTS.rglob("test_*.py") for name in re.findall(r"def (test_\w+)", path.read_text("utf-8")))


def is_there(named: str) -> bool:
    """`test_a.py`, `tests/lua/test_a.py`, `test_a*.py`, `test_a_thing`, `test_a_thing_…`."""
    if named.endswith("/"):
        return (ROOT / named).is_dir()
    pattern = re.escape(named).replace(r"\*", ".*").replace("…", ".*")
    if named.endswith(".py"):
        return any(re.fullmatch(rf"(.*/)?{pattern}", file) for file in files())
    return any(re.fullmatch(pattern, name) for name in functions())


@pytest.mark.parametrize("page", ["security.md", "guarantees.md"])
def test_each_test_that_a_promise_names_is_there(page: str) -> None:
    quoted = re.findall(r"`([^`]+)`", (ROOT / "docs" / page).read_text("utf-8"))
    named = {word for word in quoted if re.fullmatch(r"(tests/[\w/]*/)?test_[\w*…]+(\.py)?|tests/[\w/]+/", word)}
    assert len(named) > 20
    assert sorted(word for word in named if not is_there(word)) == []


def test_what_is_not_there_is_noticed() -> None:
    assert not is_there("test_nobody_wrote_this")
    assert not is_there("tests/unit/sites/")
    assert not is_there("test_places.py")
    assert is_there("test_reading*.py")
