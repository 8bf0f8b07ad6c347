"""Pagers that have but numbers."""

from __future__ import annotations

import pytest
from parsel import Selector

from forum_reader.draft.paging_links import numbered_selector

URL = "http://forum.example/board/garden"


def links(own: int, last: int, form: str, here: str) -> str:
    return " ".join((here if n == own else form).format(n=n, offset=12 * (n - 1)) for n in range(1, last + 1))


@pytest.mark.parametrize(
    ("form", "here"),
    [
        ('<a href="garden?start={offset}">{n}</a>', "<b>{n}</b>"),
        ('<a href="garden?page={n}">[{n}]</a>', "<span>[{n}]</span>"),
        ('<li><a href="garden?page={n}">{n}</a></li>', '<li class="active"><a>{n}</a></li>'),
        ('<a class="pg" href="garden?page={n}">{n}<span> pages</span></a>', '<strong class="now">{n}</strong>'),
        ('<a href="/board/garden/page/{n}">{n}</a>', '<a class="now" href="/board/garden/page/{n}">{n}</a>'),
        ('<a href="garden?page={n}">{n}</a>', '<a href="garden">{n}</a>'),
    ],
)
@pytest.mark.parametrize("around", ['<div class="pages">{}</div>', '<div id="foot"><p>Pages: {}</p></div>'])
def test_each_page_leads_to_the_one_after_it_and_the_last_to_none(form: str, here: str, around: str) -> None:
    def page(own: int) -> Selector:
        return Selector(f"<body><i>7</i>{around.format(links(own, 4, form, here))}<a href='/x'>3</a></body>")

    found = numbered_selector(page(1).root, URL)
    if 'href="garden">' in here:  # only the first page has this address
        assert found is None or page(1).xpath(found).attrib["href"] == "garden?page=2"
        return
    assert found is not None
    assert [page(own).xpath(found).xpath("string()").re_first(r"\d") for own in (1, 2, 3, 4)] == ["2", "3", "4", None]


@pytest.mark.parametrize(("here", "between"), [("[{n}]", " "), ("{n}", " | "), (" {n} ", ", ")])
def test_a_pager_without_any_mark(here: str, between: str) -> None:
    def page(own: int) -> Selector:
        numbers = links(own, 4, between + '<a href="garden?page={n}">{n}</a>', here)
        return Selector(f"<body><p>Pages: {numbers}</p></body>")

    found = numbered_selector(page(1).root, URL)
    assert found is not None
    assert [page(own).xpath(found).xpath("string()").get() for own in (1, 2, 3, 4)] == ["2", "3", "4", None]


@pytest.mark.parametrize(
    "numbers",
    [
        "".join(f'<td><a href="/calendar/2026-11-{n:02}">{n}</a></td>' for n in range(1, 30)),
        '<a href="garden/topic?page=2">2</a> <a href="garden/topic?page=3">3</a>',
        "<b>1</b> <i>2</i>",
    ],
)
def test_numbers_that_are_no_pages_of_this_one_lead_nowhere(numbers: str) -> None:
    assert numbered_selector(Selector(f'<body><div class="days">{numbers}</div></body>').root, URL) is None
