"""`read_page`: which links lead to other pages of a thread or a list, and which to other threads."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from forum_reader.readers.page_reader import read_page
from tests.support import thread_pages

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
SITE = "https://forum.example"
PAGERS = {
    "the topics' pages": (
        "/i.php?board=2.0",
        "/i.php?board=2.20 »  /i.php?topic=73.20 2  /i.php?topic=73.40 3",
        "/i.php?board=2.20",
        [],
    ),
    "semicolons": (
        "/show.pl?bid=3",
        "/show.pl?bid=3;pg=2 ▶  /show.pl?bid=3;pg=9 9",
        "/show.pl?bid=3;pg=2",
        ["/show.pl?bid=3;pg=9"],
    ),
    "pages in paths": ("/a/b/2", "/a/b/1 1  /a/b/3 3  /a/b/3 next", "/a/b/3", ["/a/b/1", "/a/b/3"]),
    "a page behind a slug": (
        "/t/pumps.123/",
        "/t/pumps.123/page-2 2  /t/pumps.123/page-2 Next",
        "/t/pumps.123/page-2",
        ["/t/pumps.123/page-2"],
    ),
    "less to say": ("/v.php?f=2&t=48217&start=20", "/v.php?t=48217&start=40 Next", "/v.php?t=48217&start=40", []),
    "in another board": (
        "/t.asp?h=0&f=2&t=48217",
        "/t.asp?h=0&f=9&t=48217&i=20 2  /new.asp?h=0&hrs=3 3",
        None,
        ["/t.asp?h=0&f=9&t=48217&i=20"],
    ),
    "older ones": ("/topic/7", "/topic/7?before=991 Load_older_comments", "/topic/7?before=991", []),
    "the next thread": ("/v.php?t=48217", "/v.php?t=48216 «  /v.php?t=48218 »", None, []),
    "the next thread's path": ("/t/48217", "/t/48216 «_previous  /t/48218 next_»", None, []),
    "the next thread's parameter": (
        "/s.php?tid=7",
        "/s.php?tid=7&action=nextnewest Next_»  /s.php?tid=7&page=2 2",
        None,
        ["/s.php?tid=7&page=2"],
    ),
    "the thread before": ("/v.php?t=7", "/v.php?t=7&view=previous next  /v.php?t=7&start=15 2", None, ["/v.php?t=7&start=15"]),
    "another thread": ("/topic.php?id=7", "/topic.php?id=7&p=2 2  /topic.php?id=99 7", None, ["/topic.php?id=7&p=2"]),
    "Russian": ("/b/?p=1", "/b/?p=2 2  /b/?p=2 След.", "/b/?p=2", ["/b/?p=2"]),
    "Italian": ("/b/7", "/b/7/page/2/ Pagina_successiva_»", "/b/7/page/2/", []),
    "numbers of other things": ("/q/7", "/q/7/likes/3 3  /q/7/badges/5 5  /q/7?page=2 2", None, ["/q/7?page=2"]),
}


@pytest.mark.parametrize(("path", "links", "following", "pages"), PAGERS.values(), ids=PAGERS)
def test_pages_are_of_what_is_read(path: str, links: str, following: str | None, pages: list[str]) -> None:
    pairs = (link.split(" ") for link in links.split("  "))
    pager = " ".join(f"<a href='{href}'>{text.replace('_', ' ')}</a>" for href, text in pairs)
    markup = thread_pages.classes(thread_pages.posts(), "en").replace("</body>", f"<div>{pager}</div></body>")
    page = read_page(markup, f"{SITE}{path}", now=NOW)
    assert page.next == (following and f"{SITE}{following}")
    assert list(page.pages) == [f"{SITE}{one}" for one in pages]


def test_the_class_of_a_link_says_that_it_leads_on() -> None:
    for name, following in (("pagination_next", f"{SITE}/t/48217?page=2"), ("textnext", None)):
        pager = f"<div><a class='{name} small' href='/t/48217?page=2'>Nabos &raquo;</a></div></body>"
        markup = thread_pages.classes(thread_pages.posts(), "en").replace("</body>", pager)
        assert read_page(markup, f"{SITE}/t/48217", now=NOW).next == following


def test_the_next_thread_in_the_head_of_a_page_is_not_its_next_page() -> None:
    markup = thread_pages.classes(thread_pages.posts(), "en")
    for href, following in (("/t/48218", None), ("/t/48217?page=2", f"{SITE}/t/48217?page=2")):
        page = read_page(markup.replace("</head>", f"<link rel=next href='{href}'></head>"), f"{SITE}/t/48217", now=NOW)
        assert page.next == following


def test_addresses_are_relative_to_the_base_of_a_page() -> None:
    markup = thread_pages.classes(thread_pages.posts(), "en")
    markup = markup.replace("</head>", "<base href='/forum/'></head>").replace("</body>", "<a href='t/48217/page-2'>2</a></body>")
    page = read_page(markup, f"{SITE}/forum/t/48217/", now=NOW)
    assert page.pages == (f"{SITE}/forum/t/48217/page-2",)
    assert page.posts[0].author_url is not None
    assert page.posts[0].author_url.startswith(f"{SITE}/")
