"""Which forum an address names, for software without an index that lists all forums."""

from __future__ import annotations

import pytest
from lxml import html

from forum_reader.definition import load
from forum_reader.draft.boards import MOST, addressed_forums

BASE = "https://lists.example"
OWN = [
    ("public-inbox", "/garden/", "garden"),
    ("public-inbox", "/garden/?t=20260101000000", "garden"),
    ("public-inbox", "/deep/garden/m1@example.org/T/#u", "deep/garden"),
    ("public-inbox", "/garden/_/text/help/", "garden"),
    ("hyperkitty", "/list/talk@lists.example.org/thread/ABC/", "talk@lists.example.org"),
    ("hyperkitty", "/list/talk%40lists.example.org/latest", "talk@lists.example.org"),
    ("pipermail", "/pipermail/garden/2026-November/thread.html", "pipermail/garden/2026-November"),
    ("hypermail", "/Archives/garden/2026Nov/0012.html", "Archives/garden/2026Nov"),
    ("mhonarc", "/archives/garden/msg00041.html", "archives/garden"),
    ("khoros", "/t5/Garden/bd-p/garden", "Garden/bd-p/garden"),
    ("khoros", "/t5/Garden/How-to-grow/td-p/12345", None),
    ("v2ex", "/go/python?p=2", "python"),
    ("v2ex", "/t/123456", None),
    ("reddit-old", "/r/gardening/new/", "gardening"),
    ("reddit-old", "/user/somebody", None),
    ("ubbthreads", "/ubbthreads.php/forums/7/2/garden", "7"),
    ("askbot", "/questions/scope:all/sort:age-desc/tags:soil,clay/page:1/", "all"),
]


@pytest.mark.parametrize(("profile", "path", "forum"), OWN, ids=[f"{name} {path}" for name, path, _ in OWN])
def test_an_address_names_its_forum(profile: str, path: str, forum: str | None) -> None:
    found = addressed_forums(load.profile_table(profile), BASE, BASE + path, None)
    assert [one.id for one in found] == ([forum] if forum else [])


def page(*hrefs: str) -> html.HtmlElement:
    return html.fromstring("<body>" + "".join(f'<a href="{href}">Name of {href}</a>' for href in hrefs) + "</body>")


def test_links_name_forums_each_once_and_of_this_forum_alone() -> None:
    links = page("/go/python", "/go/python?p=2", "https://evil.example/go/evil", "/about", "http://[", "/go/%0aline", "/go/中文")
    found = addressed_forums(load.profile_table("v2ex"), BASE, f"{BASE}/", links)
    assert [(one.id, one.name) for one in found] == [("python", "Name of /go/python"), ("中文", "Name of /go/中文")]


def test_a_threads_page_names_the_forum_above_its_posts() -> None:
    found = addressed_forums(load.profile_table("v2ex"), BASE, f"{BASE}/t/1", page("/go/python", "/go/other"))
    assert [one.id for one in found] == ["python"]


def test_no_page_names_more_forums_than_a_file_can_be_read_with() -> None:
    many = page(*(f"/go/n{number}" for number in range(MOST + 50)))
    assert len(addressed_forums(load.profile_table("v2ex"), BASE, f"{BASE}/", many)) == MOST


def test_where_any_address_would_fit_none_does() -> None:
    table = {"pages": {"list": {"url": "/{forum}/"}}}
    assert addressed_forums(table, BASE, f"{BASE}/login/", page("/about/")) == ()
