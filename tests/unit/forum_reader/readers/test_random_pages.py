"""No page makes the reader fail, hang, or say more than the page does."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import UTC, datetime
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forum_reader.errors import NotAPage, PageTooLarge
from forum_reader.page.page_tree import MOST_ELEMENTS
from forum_reader.readers.page_reader import read_page
from tests.support import thread_pages
from tests.support.examples import examples

URL = "https://forum.example/t/1"
NOW = datetime(2026, 11, 22, tzinfo=UTC)

_TAGS = st.sampled_from(
    [
        "title", "div", "p", "span", "a", "b", "i", "td", "tr", "table", "ul", "li", "dl", "dt", "dd", "time", "pre",
        "blockquote", "article", "h1", "br", "script", "noscript",
    ]
)  # fmt: skip
_VALUES = st.sampled_from(
    [
        "", "post", "author", "signature", "post-1", "post-2", "/user/1", "/t/1?page=2", "2026-03-01T10:00:00Z", "#", "//[",
        "name",        "http://[::1", "https://schema.org/Comment", "datePublished", "text",
    ]
)  # fmt: skip
_ATTRIBUTES = st.dictionaries(
    st.sampled_from(["class", "id", "href", "datetime", "itemprop", "itemtype", "itemscope", "name", "title", "rel"]),
    _VALUES,
    max_size=3,
)
_WORDS = st.sampled_from(
    [
        "walter", "Mar 3, 2026 09:11", "3天前", "yesterday", "1 Like", "a longer text of several words", "99:99", "31.31.31",
        "\x00",         "&lt;p&gt;x&lt;/p&gt;",
    ]
)  # fmt: skip


def _element(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    def markup(tag: str, attributes: dict[str, str], parts: list[str]) -> str:
        written = "".join(f' {name}="{value}"' for name, value in attributes.items())
        return f"<{tag}{written}>{''.join(parts)}</{tag}>"

    return st.builds(markup, _TAGS, _ATTRIBUTES, st.lists(inner, max_size=5))


PAGES = st.lists(st.recursive(_WORDS, _element, max_leaves=40), min_size=1, max_size=6).map("".join)


@pytest.mark.thorough
@settings(max_examples=examples(150), deadline=None, derandomize=True)
@given(PAGES, st.integers(1, 4))
def test_any_markup_is_read(markup: str, times: int) -> None:
    html = f"<html><body>{markup * times}</body></html>"
    page = read_page(html, URL, now=NOW, profiles=False)
    assert sum(len(post.text) for post in page.posts) <= 2 * len(html)


@settings(max_examples=examples(100), deadline=None, derandomize=True)
@given(st.text(max_size=300))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        read_page(text, URL, now=NOW, profiles=False)
    except NotAPage:
        assert "<" not in text or not text.strip("\x00 <>")


def _deep(size: int) -> str:
    return "<div class='comment' id='c1'><a class='author' href='/user/1'>x</a><i>3 Mar 2026</i>word " * size


def _flat(size: int) -> str:
    return "<div><a class='author' href='/user/1'>x</a><i>3 Mar 2026</i> some words of a post</div>" * size


def _dates(size: int) -> str:
    return "<p>1.2.26 3/4/26 Mar 3 </p>" * size


def _steps(html: str) -> int:
    """Lines of Python that are run to read a page: as repeatable as the page, unlike time."""
    steps = 0

    def count(frame: FrameType, event: str, arg: object) -> Callable[..., Any] | None:
        nonlocal steps
        steps += event == "line"
        return count if "/forum_reader/" in frame.f_code.co_filename else None

    before = sys.gettrace()
    sys.settrace(count)
    try:
        read_page(html, URL, now=NOW, profiles=False)
    finally:
        sys.settrace(before)
    return steps


@pytest.mark.thorough
@pytest.mark.parametrize("made", [_deep, _flat, _dates])
def test_ten_times_the_page_costs_about_ten_times_as_much(made: Callable[[int], str]) -> None:
    small = _steps(f"<html><body>{made(50)}</body></html>")
    assert _steps(f"<html><body>{made(500)}</body></html>") < 15 * small


def test_a_page_of_too_many_elements_is_refused() -> None:
    with pytest.raises(PageTooLarge, match="elements"):
        read_page("<i>x</i>" * (MOST_ELEMENTS + 10), URL, now=NOW, profiles=False)


@pytest.mark.parametrize("script", ["{", "[" * 100_000, '{"@type": "Question", "author": 5, "suggestedAnswer": "x"}', "null"])
def test_a_bad_script_takes_nothing_with_it(script: str) -> None:
    posts = thread_pages.posts()
    tag = f'<script type="application/ld+json" class="schema.org">{script}</script>'
    page = read_page(thread_pages.classes(posts, "en").replace("</head>", f"{tag}</head>"), URL, now=NOW, profiles=False)
    assert len(page.posts) == len(posts)
