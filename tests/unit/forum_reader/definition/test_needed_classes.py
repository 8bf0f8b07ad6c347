"""A selector is not searched on a page that has none of the classes that it needs, and finds nothing there."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from lxml import etree
from parsel.selector import create_root_node

from forum_reader.definition import load
from forum_reader.definition.selectors import HtmlFinder, compiled
from forum_reader.reading import parse_body

FORUMS = Path(__file__).parents[3] / "fixtures" / "forums"
PAGES = sorted(FORUMS.glob("*/*.html"))


@pytest.mark.parametrize(
    ("selector", "needs"),
    [
        ("div.a p", [{"a"}]), (".a > .b.c + .d", [{"a", "b", "c", "d"}]), (".a, .b .c", [{"a"}, {"b", "c"}]),
        ("p:not(.b).c", [{"c"}]),
        (".a:has(.b)", [{"a"}]), (".a::attr(href)", [{"a"}]), (".a:is(.b, .c)", [{"a"}]), (".a[id]:first-child", [{"a"}]),
        ("p", [set()]), (".a, p", [{"a"}, set()]), ("p:not(.b)", [set()]), ("p:has(.b)", [set()]), ("#a", [set()]),
        ("//p[@class='a']", [set()]), (".", [set()]), ("./@id", [set()]),
    ],
)  # fmt: skip
def test_classes_that_a_match_needs(selector: str, needs: list[set[str]]) -> None:
    finder = compiled("html", selector)
    assert isinstance(finder, HtmlFinder)
    assert [set(classes) for classes, _ in finder.parts] == needs


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}-{page.stem}")
def test_parts_that_are_left_out_would_find_nothing(page: Path) -> None:
    root = create_root_node(page.read_text("utf-8", "replace"), etree.HTMLParser)
    parse_body.begin(page.stat().st_size)  # that of the page which another test has read may be spent
    names = frozenset(name for value in root.xpath("//@class") for name in value.split())
    for finder in finders(page.parent.name):
        fitting = finder.on_page(names)
        found = finder(root)
        assert (fitting(root) if fitting else []) == found
        assert finder.first(root)[:1] == found[:1]


@lru_cache(maxsize=64)
def finders(profile: str) -> tuple[HtmlFinder, ...]:
    """Of all selectors of a profile."""
    file = load.PROFILES / f"{profile}.toml"
    tables = tomllib.loads(file.read_text("utf-8")).get("pages", {}) if file.exists() else {}
    found = []
    for text in set(texts_of(tables)):
        try:
            finder = compiled("html", text)
        except ValueError:  # an address, or a regular expression
            continue
        if isinstance(finder, HtmlFinder):
            found.append(finder)
    return tuple(found)


def texts_of(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from texts_of(one)
