"""The index of a page finds what XPath finds."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from lxml import etree
from parsel.selector import create_root_node

from forum_reader.definition import layers
from forum_reader.definition.selectors import HtmlFinder, compiled
from forum_reader.reading.element_index import ElementIndex

FORUMS = Path(__file__).parents[3] / "fixtures" / "forums"
PAGES = sorted(FORUMS.glob("*/*.html"))
MARKUP = """<html><body class="page\u00a0x"><div class=" a\tb " id=p1><p class="b c">1</p>
<div class=a><p lang=en data-x="post-1 y">2</p></div></div>
<div class="ab" id="p2"><span class=b></span><p>3<!-- --></p><i></i></div>
<div class=a id=p3><p class=b>4</p><p class="">5</p></div></body></html>"""
SELECTORS = [
    "*", "p", ".a", ".b", ".x", ".page", "div.a p", "div > p", ".a > .b", ".a .a p", "#p1 p", "#p1.a > div > p", "p + div",
    "p + p", "p:not(.b)", "div:not([id=p2])", "div:has(.b)", "p:first-child", "p:last-child", "[id^=p]", "[data-x~=y]",
    "[data-x$=y]", "[class]", "[lang=en], .b, #p3", "p::attr(class)", "[id*='2'] p", ".a .b, .ab .b", "div .nowhere",
    "body div div", "i + p", "P.b", ".", "./@id", "./@id[starts-with(., 'p')]", "./self::div[contains(@class, 'a')]",
    "./self::*[contains(concat(' ', @class, ' '), ' b ')]", "./self::p[contains(concat(' ', @class, ' '), ' b ')]",
]  # fmt: skip


@pytest.mark.parametrize("selector", SELECTORS)
def test_the_index_finds_what_xpath_finds_within_any_element(selector: str) -> None:
    root = create_root_node(MARKUP, etree.HTMLParser)
    finder = compiled("html", selector)
    index = ElementIndex(root)
    assert isinstance(finder, HtmlFinder)
    assert finder.plan is not None
    for element in root.iter("*"):
        found = index.find(finder, element)
        assert found == finder(element) or (found is None and "+" in selector and element is not root)


@pytest.mark.parametrize("selector", SELECTORS)
def test_rows_that_are_searched_together_find_what_each_finds_alone(selector: str) -> None:
    root = create_root_node(f"<section>{MARKUP}</section>{MARKUP}", etree.HTMLParser)
    finder = compiled("html", selector)
    assert isinstance(finder, HtmlFinder)
    index = ElementIndex(root)
    rows = [*root.xpath("//body/div | //section/div | //p[ancestor::div/@id = 'p3']")][::2]
    rows = [row for row in rows if not any(row in one.iterdescendants() for one in rows)]
    assert len(rows) > 2
    index.search_together(rows)
    for element in (*rows, *rows[0].iterdescendants(), root):
        found = index.find(finder, element)
        assert found == finder(element) or (found is None and "+" in selector and element is not root)


@pytest.mark.parametrize("selector", ["a ~ b", "td:nth-child(2)", "p::text", ":is(a, b)", "//p", "./@id[. = 'x']", "a:not(b c)"])
def test_a_selector_that_is_not_simple_is_left_to_its_xpath(selector: str) -> None:
    root = create_root_node(MARKUP, etree.HTMLParser)
    assert ElementIndex(root).find(compiled("html", selector), root) is None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}-{page.stem}")
def test_profiles_find_the_same_by_index_and_by_xpath(page: Path) -> None:
    root = create_root_node(page.read_text("utf-8", "replace"), etree.HTMLParser)
    index = ElementIndex(root)
    elements = list(root.iter("*"))
    for finder in finders(page.parent.name):
        for element in (root, *elements[3 :: max(1, len(elements) // 12)]):
            found = index.find(finder, element)
            assert found is None or found == finder(element)


def test_rows_that_are_left_out_are_not_found_and_are_afterwards() -> None:
    root = create_root_node(
        "<div id=r1><p>1</p><div id=r2><p>2</p><div id=r3><p>3</p></div></div><p>4</p></div>", etree.HTMLParser
    )
    rows = [root.xpath(f"//div[@id='r{number}']")[0] for number in (1, 2, 3)]
    index, finder = ElementIndex(root), compiled("html", "p")

    def texts(row: Any) -> list[str]:
        return [one.text for one in index.find(finder, row) or []]

    with index.left_out(rows[0], {rows[0]: [rows[1]], rows[1]: [rows[2]]}):
        assert texts(rows[0]) == ["1", "4"]
    assert texts(rows[0]) == ["1", "2", "3", "4"]
    assert [texts(row) for row in rows[1:]] == [["2", "3"], ["3"]]


def test_an_element_of_another_tree_is_left_to_xpath() -> None:
    index = ElementIndex(create_root_node(MARKUP, etree.HTMLParser))
    assert index.find(compiled("html", "p"), create_root_node(MARKUP, etree.HTMLParser)) is None


@lru_cache(maxsize=64)
def finders(profile: str) -> tuple[HtmlFinder, ...]:
    """Of all selectors of a profile that have a plan."""
    file = layers.PROFILES / f"{profile}.toml"
    tables = tomllib.loads(file.read_text("utf-8")).get("pages", {}) if file.exists() else {}
    found = []
    for text in set(texts_of(tables)):
        try:
            finder = compiled("html", text)
        except ValueError:  # an address, or a regular expression
            continue
        if isinstance(finder, HtmlFinder) and finder.plan is not None:
            found.append(finder)
    return tuple(found)


def texts_of(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from texts_of(one)
