"""`read_page`: what kind a page of known software is, where its profile finds boards, threads, or posts of a word."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from forum_reader.page.records import PageKind, Reader, SeenPage
from forum_reader.readers.page_reader import read_page

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
FORUMS = Path(__file__).parents[3] / "fixtures/forums"
PARTS = {("misago", "index")}  # of a page
PAGES = [
    page
    for page in sorted(FORUMS.glob("*/*.html"))
    if page.stem in ("index", "list") and (page.parent.name, page.stem) not in PARTS
]
VB4 = (
    "<html id=vbulletin_html lang=en><head><meta name=generator content='vBulletin 4.2.2'><title>Pumps</title></head><body>"
    "{}<a href=/forumdisplay.php?f=1>f</a></body></html>"
)
BOARD = (
    "<li id=forum{n} class='forumbit_post old L2'><h2 class=forumtitle><a href=/forumdisplay.php?{n}-b>Board {n}</a></h2>"
    "<p class=forumdescription>What there is to say of pumps of the sort {n}, and of all that belongs to them.</p>"
    "<div class=forumlastpost><h4>Last Post:</h4><a class=threadtitle href=/showthread.php?{n}1>It drips {n}</a>"
    "by <a class=username href=/member.php?{n}>ann{n}</a><p class=lastpostdate>0{n}-11-2026, 10:15</p></div></li>"
)
THREAD = (
    "<li id=thread_{n} class=threadbit><h3><a class=title href=/showthread.php?{n}-it-drips>It drips a lot {n}</a></h3>"
    "<div class=author>Started by <a class=username href=/member.php?{n}>ann{n}</a>, 0{n}-11-2026</div>"
    "<dl class=threadlastpost><dd><a href=/member.php?{n}1>ben{n}</a></dd><dd>1{n}-11-2026 10:15</dd></dl></li>"
)
JUMP = "".join(f"<li><a href=/f{n}-everything-about-pumps>Everything about pumps of sort {n}</a></li>" for n in range(80))


def seen(html: str, url: str = "https://forum.example/forum.php") -> SeenPage:
    return read_page(html, url, now=NOW)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}-{page.stem}")
def test_the_boards_and_threads_that_a_profile_finds_are_what_the_page_lists(page: Path) -> None:
    found = seen(page.read_bytes().decode("gb18030" if page.parent.name in ("discuz", "nga") else "utf-8", "replace"))
    assert found.kind is (PageKind.INDEX if page.stem == "index" else PageKind.LIST)
    assert found.rows
    assert not found.posts


def test_boards_with_their_last_posts_are_no_thread() -> None:
    page = seen(VB4.format("<ol id=forums>" + "".join(BOARD.format(n=n) for n in range(1, 8)) + "</ol>"))
    assert (page.kind, page.posts) == (PageKind.INDEX, ())
    assert [row.title for row in page.rows] == [f"Board {n}" for n in range(1, 8)]


def test_a_list_of_all_boards_in_a_menu_hides_no_threads() -> None:
    threads = "<ol id=threads>" + "".join(THREAD.format(n=n) for n in range(1, 7)) + "</ol>"
    page = seen(VB4.format(f"<div id=threadlist>{threads}</div><div class=jump><ul>{JUMP}</ul></div>"))
    assert page.kind is PageKind.LIST
    assert [row.title for row in page.rows] == [f"It drips a lot {n}" for n in range(1, 7)]


def test_posts_of_one_word_are_posts_where_a_profile_reads_them() -> None:
    cities = ("Austin", "Nice", "Essen", "Novara")
    posts = "".join(
        f"<li id=post-{n} class=message data-author=ann{n}><div class=messageUserInfo><a class=username href=members/ann.{n}/>"
        f"ann{n}</a></div><div class=messageInfo><div class=messageContent><blockquote class=messageText>{city}</blockquote>"
        f"</div><a class=datePermalink href=posts/{n}/><abbr class=DateTime data-time=17700000{n}0>then</abbr></a></div></li>"
        for n, city in enumerate(cities, 1)
    )
    html = (
        f"<html id=XenForo lang=en-US><title>Cities</title><body><ol id=messageList class=messageList>{posts}</ol></body></html>"
    )
    page = seen(html, "https://forum.example/threads/cities.7/")
    assert (page.kind, page.reader) == (PageKind.THREAD, Reader.PROFILE)
    assert [post.text for post in page.posts] == list(cities)


def test_a_saved_page_without_an_address_is_read() -> None:
    page = (FORUMS / "xenforo/comments-1.html").read_text("utf-8")
    assert len(seen(page, "").posts) == len(seen(page, "https://forum.example/threads/pumps.1/").posts) > 1
