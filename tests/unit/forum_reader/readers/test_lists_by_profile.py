"""`read_page`: threads and forums by the profile of a software that is recognised, where a page shows no posts; short posts."""

from __future__ import annotations

from datetime import UTC, datetime

from forum_reader.page.records import PageKind, Reader, SeenPage
from forum_reader.readers.page_reader import read_page

HOST = "https://forum.example"
STYLE = '<link rel="stylesheet" href="/styles/lamp/theme/stylesheet.css">'


def seen(body: str, path: str) -> SeenPage:
    html = f"<html><head><title>Lamps</title>{STYLE}</head>{body}</html>"
    return read_page(html, f"{HOST}{path}", now=datetime(2026, 11, 22, 12, 0, tzinfo=UTC))


def phpbb(section: str, inner: str) -> str:
    return f'<body id="phpbb" class="section-{section}"><div id="page-body">{inner}</div></body>'


def topic(number: int, title: str) -> str:
    return (
        f'<li class="row"><dl><dt><a href="./viewtopic.php?f=2&amp;t={number}" class="topictitle">{title}</a><br>by '
        f'<a href="./memberlist.php?mode=viewprofile&amp;u={number}" class="username">ida</a> » 3 Mar 2026, 10:0{number}</dt>'
        f'<dd class="posts">4</dd><dd class="views">91</dd><dd class="lastpost"><span>by <a href="./memberlist.php?'
        f'mode=viewprofile&amp;u=9{number}">ann{number}</a><br>4 Mar 2026, 11:0{number}</span></dd></dl></li>'
    )


def test_a_board_with_two_threads_lists_them() -> None:
    rows = "".join(topic(n, title) for n, title in enumerate(("A lamp that hums", "Which bulb?"), 1))
    page = seen(
        phpbb("viewforum", f'<h2 class="forum-title">Lamps</h2><ul class="topiclist topics">{rows}</ul>'), "/viewforum.php?f=2"
    )
    assert page.kind is PageKind.LIST
    assert [(row.title, row.url) for row in page.rows] == [
        ("A lamp that hums", f"{HOST}/viewtopic.php?f=2&t=1"),
        ("Which bulb?", f"{HOST}/viewtopic.php?f=2&t=2"),
    ]


def test_menus_with_more_links_are_not_taken_for_the_threads() -> None:
    menu = "".join(f'<li><a href="/p{n}">Help with page {n} of this board</a></li>' for n in range(9))
    rows = "".join(topic(n, f"Question {n} about the lamp in my hall") for n in range(1, 5))
    page = seen(
        phpbb("viewforum", f'<ul class="linklist">{menu}</ul><ul class="topiclist topics">{rows}</ul>'), "/viewforum.php?f=2"
    )
    assert page.kind is PageKind.LIST
    assert [row.title for row in page.rows] == [f"Question {n} about the lamp in my hall" for n in range(1, 5)]


def test_posts_of_a_profile_are_a_thread_however_short() -> None:
    posts = "".join(
        f'<div id="p{n}0" class="post"><div class="inner"><dl class="postprofile" id="profile{n}0"><dt><a href="./memberlist.php?'
        f'mode=viewprofile&amp;u={n}" class="username">ida{n}</a></dt></dl><div class="postbody"><p class="author">by <strong>'
        f'<a href="./memberlist.php?mode=viewprofile&amp;u={n}" class="username">ida{n}</a></strong> » 3 Mar 2026, 10:0{n}</p>'
        f'<div class="content">+{n}</div></div></div></div>'
        for n in range(1, 4)
    )
    page = seen(
        phpbb("viewtopic", f'<h2 class="topic-title"><a href="./viewtopic.php?t=1">Lamps</a></h2>{posts}'), "/viewtopic.php?t=1"
    )
    assert (page.kind, page.reader) == (PageKind.THREAD, Reader.PROFILE)
    assert [(post.author, post.text) for post in page.posts] == [(f"ida{n}", f"+{n}") for n in range(1, 4)]
