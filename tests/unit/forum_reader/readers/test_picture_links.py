"""Links to other pages that are pictures, and dates that only a script shows."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from lxml import html

from forum_reader.draft.paging_links import next_selector
from forum_reader.readers.page_reader import read_page

URL = "https://forum.example/read.php?nr=7"
POSTS = "".join(
    f'<div class="post" id="p{n}"><a class="who" href="/user/{n}">Ann {n}</a>'
    f'<x-time data-ts="{1_790_000_000_000 + n * 60_000}">recently</x-time>'
    f'<div class="text">A post of some length, number {n} of them, about slugs and what they eat.</div></div>'
    for n in range(1, 7)
)


@pytest.mark.parametrize("named", ["<img alt='Next page' src='r.gif'>", "<img title='older' src='r.gif'>"])
def test_a_picture_leads_to_the_next_page_by_its_name(named: str) -> None:
    links = f'<a href="/read.php?nr=7&amp;page=3">{named}</a> <a href="/read.php?nr=7&amp;page=1"><img alt="previous"></a>'
    page = read_page(f"<html><body>{POSTS}{links}</body></html>", f"{URL}&page=2")
    assert page.next == "https://forum.example/read.php?nr=7&page=3"


@pytest.mark.parametrize(("said", "leads"), [("Older posts", True), ("Next comments", True), ("Next thread", False)])
def test_a_link_to_older_posts_leads_to_the_next_page(said: str, leads: bool) -> None:
    page = read_page(f'<html><body>{POSTS}<a href="/read.php?nr=7&amp;page=2">{said}</a></body></html>', URL)
    assert page.next == (f"{URL}&page=2" if leads else None)


def test_the_next_page_is_selected_by_the_name_of_its_picture() -> None:
    links = '<a href="?nr=7&amp;page=3"><img alt="nächste Seite"></a> <a href="?nr=7&amp;page=1"><img alt="vorige Seite"></a>'
    root = html.fromstring(f"<html><body>{links}</body></html>")
    assert next_selector(root, URL, f"{URL}&page=3") == 'a:has(> img[alt="nächste Seite"])'


def test_moments_in_data_ts_are_dates() -> None:
    page = read_page(f"<html><body>{POSTS}</body></html>", URL)
    assert [post.published for post in page.posts] == [datetime.fromtimestamp(1_790_000_000 + n * 60, UTC) for n in range(1, 7)]


def test_an_icon_leads_to_the_next_page_and_another_to_the_last() -> None:
    def links(number: int, last: int) -> str:
        icon = '<i class="fa fa-chevron-{}"></i>'
        back = f'<a href="?nr=7&amp;page={number - 1}">{icon.format("left")}</a>' if number > 1 else ""
        on = f'<a href="?nr=7&amp;page={number + 1}">{icon.format("right")}</a>' if number < last else ""
        end = f'<a href="?nr=7&amp;page={last}">Last {icon.format("right")}</a>' if number < last else ""
        return f"<html><body>{POSTS}<ul><li>{back}</li><li>{on}</li><li>{end}</li></ul></body></html>"

    for last in (2, 5):
        page = read_page(links(1, last), URL)
        assert page.next == f"{URL}&page=2"
        assert next_selector(html.fromstring(links(1, last)), URL, page.next) == "a:has(> i.fa-chevron-right)"
    assert read_page(links(5, 5), f"{URL}&page=5").next is None
