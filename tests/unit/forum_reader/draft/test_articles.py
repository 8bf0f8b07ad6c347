"""Articles above their comments, whose author and date are on the list alone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from scrapy.http import HtmlResponse

from forum_reader.draft.page_sample import OpenedPage, opened
from forum_reader.draft.thread_wrapper import learn_comments

SAID = (
    "Mine did that until I put a filter between the two of them.",
    "A longer aerial helped here.",
    "Try another socket first.",
)
URL = "https://yard.example/log/{}/"
BEGIN = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)


def article(number: int) -> OpenedPage:
    rows = "".join(
        f'<div class="c" id="c{number}{n}"><div class="w"><p>{text} ({number})</p></div>'
        f'<p>Said by <a href="/user/{name}">{name}</a> <i>{BEGIN + timedelta(days=number, hours=n):%Y-%m-%d %H:%M}</i></p></div>'
        for n, (name, text) in enumerate(zip(("ida", "walter", "may"), SAID, strict=True), 1)
    )
    text = f'<div id="text" role="main"><p>What number {number} is about.</p><p>In two paragraphs.</p></div>'
    body = f'<title>Number {number}</title><div><p><a href="/">Yard</a></p></div><div>{text}<div id="all">{rows}</div></div>'
    page = opened(HtmlResponse(URL.format(number), body=body.encode(), encoding="utf-8"))
    assert page is not None
    return page


@pytest.mark.parametrize("before", [True, False])
def test_the_text_above_the_rows_is_the_opening_post_where_the_list_says_that_it_is_older(before: bool) -> None:
    pages = [article(number) for number in (1, 2, 3)]
    listed = {page.url: BEGIN + timedelta(days=n, hours=0 if before else 1) for n, page in enumerate(pages, 1)}
    learned: dict[str, Any] | None = learn_comments(pages, listed=listed)
    assert learned is not None
    assert learned["first_is_post"] is not before
    assert learned["post"].get("body") == ('div[role~="main"]' if before else None)
