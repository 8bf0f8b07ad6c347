"""`read_page`: pages that show no posts, though they have boxes with names as threads have: logins, registrations, shops."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from forum_reader.page.records import PageKind, SeenPage
from forum_reader.page.soft_block import ASKS_FOR_LOGIN
from forum_reader.readers.page_reader import read_page

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
FIELDS = "<label>Name:</label><input name=user><label>Password:</label><input type=password name=pass><input type=submit>"
RULES = "Before you go on you accept the rules of this board, which are that nobody insults anybody here, whatever it is about."
ASKED = "You have to be a member of this board to see what is written in it. It costs nothing and takes a minute."
FOOT = "<div class=copyright>Made with Somesoft, which is free. All times are UTC. The board has its own rules.</div>"
TEXT = "My radio hums as soon as the lamp is on, whatever I plug it into. Has anybody cured that? "
PAGES = {
    "a member list and a team above and below": f"<div class=box><a href=/memberlist.php?sid=7f>Members</a><h2>Log in</h2>"
    f"<form>{FIELDS}</form><p>{RULES}</p></div><div class=box><a href=/memberlist.php?mode=leaders>The team</a>"
    f"<p>{ASKED}</p></div>",
    "links to log in": f"<div class=panel><a class=user href=/user/login>Log in</a><p>{ASKED}</p><form>{FIELDS}</form></div>"
    f"<div class=panel><a class=user href=/user/password>New password</a><p>{RULES}</p></div>",
    "two forms, one with a date": f"<div class=left><a href=/u/ida>ida</a> 2026-03-04 <p>{ASKED}</p></div>"
    f"<div class=right><a href=/u/all>Everyone</a><form>{FIELDS}</form><p>{RULES}</p></div>",
    "boxes without anything": f"<div class=post-content><p>{RULES}</p><form>{FIELDS}</form></div>"
    f"<div class=comment-content><p>{ASKED}</p></div>",
    "a box that is called a text": f"<a class=author href=/u/>Board</a> 2026-03-04 10:15"
    f"<div class=post-text><form>{FIELDS}</form><p>{RULES}</p></div><a href=/reply>Reply</a>",
    "the menu of a shop": "<div class=content>"
    + "".join(f"<li><a href=/sort/{n}>Pumps and valves of sort {n}</a></li>" for n in range(9))
    + f"</div><h1>Log in</h1><form>{FIELDS}</form>",
}


def seen(body: str, url: str = "https://forum.example/ucp.php?mode=login") -> SeenPage:
    return read_page(f"<html lang=en><title>Board</title><body><div>{body}</div>{FOOT}</body></html>", url, now=NOW)


@pytest.mark.parametrize("body", PAGES.values(), ids=PAGES)
def test_a_login_is_no_thread_and_no_list(body: str) -> None:
    page = seen(body)
    assert (page.kind, page.posts, page.rows) == (PageKind.OTHER, (), ())
    assert page.notes == (ASKS_FOR_LOGIN,)


@pytest.mark.parametrize("body", list(PAGES.values())[:5], ids=list(PAGES)[:5])
def test_a_login_in_place_of_a_thread_gives_no_posts(body: str) -> None:
    page = seen(body, "https://forum.example/viewtopic.php?t=48")
    assert (page.kind, page.posts) == (PageKind.OTHER, ())
    assert page.notes == (ASKS_FOR_LOGIN,)


def test_a_field_for_a_password_in_the_head_of_a_page_says_nothing() -> None:
    page = seen(f"<header><form>{FIELDS}</form></header><p>{RULES}</p><p>{ASKED}</p>", "https://forum.example/rules")
    assert (page.kind, page.notes) == (PageKind.OTHER, ())


WRITING = "<input name=name><input name=subject><textarea name=text></textarea><input type=password name=pass> (to delete it)"
SELECTED = "<p><input type=checkbox name=delete value=1204> No. 1204: My radio hums.</p><input type=password name=pass>"
NEW_MEMBER = "<input name=user><input type=password name=a><input type=password name=b><textarea name=about></textarea>"


@pytest.mark.parametrize("form", [WRITING, SELECTED, "<input type=file name=picture><input type=password name=pass>"])
def test_a_password_for_deleting_ones_post_is_no_login(form: str) -> None:
    page = seen(f"<p>{RULES}</p><form>{form}</form><p>{ASKED}</p>", "https://board.example/b/")
    assert page.notes == ()


@pytest.mark.parametrize(
    "form", [f"{FIELDS}<input type=checkbox name=remember value=1>", NEW_MEMBER, f"{FIELDS}</form><form><textarea></textarea>"]
)
def test_a_password_for_the_page_is_a_login(form: str) -> None:
    page = seen(f"<p>{RULES}</p><form>{form}</form><p>{ASKED}</p>", "https://board.example/b/")
    assert page.notes == (ASKS_FOR_LOGIN,)


def test_boxes_without_names_and_dates_are_no_posts() -> None:
    boxes = (
        f"<div class=post id=box1><h3>Pumps</h3><p>{RULES}</p></div><div class=post id=box2><h3>Valves</h3><p>{ASKED}</p></div>"
    )
    assert seen(boxes, "https://shop.example/").kind is PageKind.OTHER


def test_a_lone_post_above_a_form_of_an_answer_is_a_post() -> None:
    body = f"<h1>Radios</h1><div class=post-text><p>{TEXT * 3}</p><form>Name: <input name=n> Mail: <input name=m></form></div>"
    body = f"<div><a class=author href=/u/ida>ida</a> 2026-03-04 10:15</div>{body}<a href=/reply>Reply</a>"
    (post,) = seen(body, "https://forum.example/t/48").posts
    assert (post.author, post.text[: len(TEXT) - 1]) == ("ida", TEXT[:-1])


def test_threads_whose_answers_have_a_form_each_are_threads() -> None:
    form = "<form>Name: <input name=n> <input type=email name=m></form>"
    posts = "".join(
        f"<div class=post><a class=author href=/u/{name}>{name}</a> 2026-03-0{n} 10:15<p>{name}: {TEXT}</p>{form}</div>"
        for n, name in enumerate(("ida", "ben", "eva"), 1)
    )
    page = seen(posts, "https://forum.example/t/48")
    assert [post.author for post in page.posts] == ["ida", "ben", "eva"]


@pytest.mark.parametrize("named", ["comment", "review", "kommentar"])
def test_two_short_comments_below_a_long_article_are_posts(named: str) -> None:
    comments = "".join(
        f"<li class={named}-{n}><b class=author>{name}</b> <time datetime=2026-03-0{n}T10:15:00Z>then</time><p>{text}</p></li>"
        for n, name, text in ((1, "ida", "I had that, too."), (2, "ben", "Ground it and it stops."))
    )
    page = seen(
        f"<div class=story><h1>Radios</h1>{f'<p>{TEXT * 4}</p>' * 40}</div><ol>{comments}</ol>", "https://news.example/radios"
    )
    assert [(post.author, post.text) for post in page.posts] == [
        ("ida", "I had that, too."),
        ("ben", "Ground it and it stops."),
    ]


def test_short_posts_by_many_are_a_thread() -> None:
    cities = ("Oslo", "Oporto", "Osaka", "Aarhus", "Sofia")
    posts = "".join(
        f"<tr><td><a href=/user-{n}.html>{name}</a></td><td>0{n}-06-2025, 10:15<div class=text>Then I say {said}.</div></td></tr>"
        for n, (name, said) in enumerate(zip(("ida", "ben", "eva", "tom", "ulf"), cities, strict=True), 1)
    )
    page = seen(f"<table>{posts}</table>", "https://forum.example/thread-7.html")
    assert [post.text for post in page.posts] == [f"Then I say {said}." for said in cities]


NEWS = (
    "The board of the club met on Monday and spoke of the new pumps.",
    "Whoever wants to see the wells may come along next Sunday at ten.",
    "The water in the northern part of the town is hard again this year.",
    "A new valve was built in, and the old one is in the museum now.",
    "The fees stay as they are, which nobody had thought possible.",
)


def test_news_that_nobody_signs_are_no_thread() -> None:
    news = "".join(f"<div class=item><b>2026-03-0{n}</b><p>{text}</p></div>" for n, text in enumerate(NEWS, 1))
    assert seen(news, "https://club.example/").kind is PageKind.OTHER


def test_posts_that_nobody_signs_and_that_have_ids_are_a_thread() -> None:
    posts = "".join(f"<div class=post id=p48{n}><b>2026-03-0{n} 10:15</b><p>{text}</p></div>" for n, text in enumerate(NEWS, 1))
    assert [post.text for post in seen(posts, "https://forum.example/t/48").posts] == list(NEWS)


def test_whole_articles_with_titles_are_a_list() -> None:
    articles = "".join(
        f"<article><h2 class=entry-title><a href=/2026/{n}-news rel=bookmark>{text[:30]}</a></h2><p>by "
        f"<a href=/author/ida>ida</a> on 2026-03-0{n} 10:15</p><div class=entry>{f'<p>{text}</p>' * 20}</div></article>"
        for n, text in enumerate(NEWS, 1)
    )
    page = seen(articles, "https://club.example/blog/")
    assert (page.kind, page.posts) == (PageKind.LIST, ())
    assert [row.title for row in page.rows] == [text[:30].strip() for text in NEWS]


def test_two_tables_of_threads_are_a_list() -> None:
    def table(first: int) -> str:
        rows = "".join(
            f"<tr><td><a href=/board/1/{n}/>Pump number {n} drips</a></td><td>ann{n}</td><td>{n}7</td>"
            f"<td>2026-03-{n:02} 10:15</td></tr>"
            for n in range(first, first + 8)
        )
        return f"<div><b><a href=/board/{first}/>Board {first}</a></b><table>{rows}</table></div>"

    page = seen(table(1) + table(11), "https://forum.example/board/24/?page=1")
    assert page.kind is PageKind.LIST
    assert len(page.rows) >= 16
