"""Kinds of pages, and where each is tested with pages of this project's own.

The pages that were made for public reports of failures (one folder each: `thai_dates`, `rtl`, `json_ld`, `inside_a_post`) stay
outside of the repository. Each is of a kind below, whose test has other words, markup or languages.
"""

from __future__ import annotations

from importlib import import_module

import pytest

from .dates import test_other_scripts
from .draft import test_boards_showing_posts, test_comment_services, test_flat_boards, test_imageboards
from .readers import test_inside_posts, test_json_ld_references, test_placeholders, test_talk_pages, test_trees_of_messages

_DATES, _LD, _INSIDE = (one.__name__ for one in (test_other_scripts, test_json_ld_references, test_inside_posts))
REPORTS = {
    "thai_dates/day_first: day before month, a clock with a word": (_DATES, "test_both_readers_read_the_same"),
    "thai_dates/digits: Thai digits": (_DATES, "test_the_posts_of_a_page_have_their_dates"),
    "thai_dates/half_day: Buddhist years, halves of the day in words": (_DATES, "test_a_word_for_the_half_of_the_day_is_read"),
    "rtl/marks: marks of direction within dates": (_DATES, "test_both_readers_read_the_same"),
    "rtl/hebrew: Hebrew months": (_DATES, "test_both_readers_read_the_same"),
    "json_ld/line_breaks: strings with raw line breaks": (_LD, "test_raw_line_breaks_in_strings_are_kept"),
    "json_ld/by_id: comments and authors by @id": (_LD, "test_posts_are_joined_by_their_ids"),
    "json_ld/reverse: comments joined by @reverse": (_LD, "test_posts_are_joined_by_their_ids"),
    "inside_a_post: quotes, hidden text": (_INSIDE, "test_quotes_hidden_texts_and_emojis_are_kept"),
    "inside_a_post: an emoji's picture": (_INSIDE, "test_only_the_alt_of_an_emoji_is_text"),
}
"""Each kind of a report, and the test that covers it."""

PAGES = {
    "boards that show posts themselves": [
        *(f"{test_imageboards.__name__} {form}" for form in ("year first", "month first")),
        *(f"{test_boards_showing_posts.__name__} {link}" for link in ("Reply", "No.")),
        *(f"{test_flat_boards.__name__} {view}" for view in ("/", "none", "/1-", "/all")),
    ],
    "one message a page above its tree, all messages in one page": [
        one.__name__ for one in (*test_trees_of_messages.ONE, *test_trees_of_messages.WHOLE)
    ],
    "talk pages of wikis": [*test_talk_pages.WIKIS, *test_talk_pages.DASHES],
    "comments below static pages": [*test_comment_services.MARKS, "Disqus", "Commento", "Cusdis"],
    "placeholders of deleted posts": test_placeholders.PLACEHOLDERS,
}
"""Pages of this project's own, by the kinds 3 to 7."""


@pytest.mark.parametrize(("module", "test"), sorted(set(REPORTS.values())))
def test_each_report_is_of_a_kind_that_a_test_covers(module: str, test: str) -> None:
    assert callable(getattr(import_module(module), test))


def test_each_kind_has_several_pages() -> None:
    assert all(len(set(pages)) == len(pages) >= 5 for pages in PAGES.values())
    assert sum(map(len, PAGES.values())) >= 30
