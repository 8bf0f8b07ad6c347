"""One message a page with its thread as a tree of titles below it, and a thread whose messages nest on one page, in the markup of
several kinds of old boards.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from forum_reader.page.records import PageKind
from forum_reader.readers.page_reader import read_page
from tests.support.message_trees import (
    Message,
    classed,
    followups,
    french,
    german,
    in_blockquotes,
    in_divs,
    in_lists,
    in_rows_of_labels,
    in_tables,
    in_terms,
    indented,
    japanese,
    thread,
    with_parents_in_attributes,
)

NOW = datetime(2026, 11, 28, tzinfo=UTC)
ONE = [followups, classed, in_tables, in_rows_of_labels, german, japanese, in_terms, french]
WHOLE = [indented, in_divs, in_lists, with_parents_in_attributes, in_blockquotes]


@pytest.mark.parametrize("size", [1, 2, 7])
@pytest.mark.parametrize("page", ONE)
def test_a_page_with_a_tree_of_titles_has_one_message(page: Callable[[Message], str], size: int) -> None:
    for one in thread(size):
        seen = read_page(page(one), f"http://board.example/messages/{one.number}.html", now=NOW)
        assert seen.kind is PageKind.THREAD
        assert [(post.author, post.text, post.published) for post in seen.posts] == [(one.author, one.text, one.at)]


@pytest.mark.parametrize("page", [followups, classed, german])
def test_the_answered_message_is_the_parent(page: Callable[[Message], str]) -> None:
    one = thread(7)[4]
    seen = read_page(page(one), f"http://board.example/messages/{one.number}.html", now=NOW)
    assert one.answered is not None
    assert [post.parent for post in seen.posts] == [str(one.answered.number)]


@pytest.mark.parametrize("page", WHOLE)
def test_a_whole_thread_on_one_page_keeps_its_parents(page: Callable[[Message], str]) -> None:
    first = thread(9)[0]
    seen = read_page(page(first), "http://board.example/thread/101", now=NOW)
    messages = list(first.in_tree())
    assert [(post.author, post.text, post.published) for post in seen.posts] == [(m.author, m.text, m.at) for m in messages]
    parents = [str(m.answered.number) if m.answered else None for m in messages]
    assert [post.parent for post in seen.posts] == parents


@pytest.mark.parametrize("page", [*ONE, *WHOLE])
def test_characters_that_xml_forbids_raise_nothing(page: Callable[[Message], str]) -> None:
    html = page(thread(7)[0]).replace(" ", "\x1b &#8;")
    read_page(html, "http://board.example/messages/101.html", now=NOW)
    html = re.sub(r">([^<>]*)<", lambda found: f">{found[1]}\x1b&#8;<", page(thread(7)[0]))
    read_page(html, "http://board.example/messages/101.html", now=NOW)
