"""`read_page`: threads of one post, where nothing repeats, and one post above what is not a reply."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from forum_reader.page.records import PageKind, SeenPage
from forum_reader.readers.page_reader import read_page

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
WORDS = "My radio hums as soon as the lamp is on, whatever I plug it into. Has anybody cured that?"
AT = datetime(2026, 3, 4, 10, 15, tzinfo=UTC)
POSTS = {
    "classes say what is what": f'<div class="post" id="post-71"><a class="user" href="/user/5">ida</a><time datetime="2026-03-04'
    f'T10:15:00Z">in March</time><div class="postBody"><p>{WORDS}</p></div></div><div class="reply"><form></form></div>',
    "the date stands before the name": f'<div class="thread-view"><p class="info">Posted on 2026-03-04 10:15 by <b>ida</b></p>'
    f'<div class="thread-text">{WORDS}</div><a href="/thread/1/reply">Write</a></div>',
    "the day of joining": '<table><tr><td><a href="/user/5">ida</a></td><td>2026-03-04, 10:15</td></tr><tr>'
    f'<td>Newbie<br>Posts: 7<br>Joined: 11.02.2019</td><td class="post2">{WORDS}</td></tr></table><a href="/r">Reply</a>',
    "the member once more": '<div class="post"><a href="/user/5">ida</a> <time datetime="2026-03-04T10:15:00Z">then</time>'
    f'<div class="text">{WORDS}</div></div><div><a href="/user/5">ida</a><br>Member<br>Posts: 9</div><a href="/r">Reply</a>',
    "a bold name, no classes": f"<div><b>ida</b> <i>2026-03-04 10:15</i><div>{WORDS}</div><a href='/q'>Reply</a></div>",
}


def seen(body: str, url: str = "https://forum.example/t/1") -> SeenPage:
    html = f'<html><head><title>Humming radio</title></head><body><h1 class="title">Humming radio</h1>{body}</body></html>'
    return read_page(html, url, now=NOW)


@pytest.mark.parametrize("body", POSTS.values(), ids=POSTS)
def test_a_thread_of_one_post_is_a_thread(body: str) -> None:
    page = seen(body)
    assert page.kind is PageKind.THREAD
    assert [(post.author, post.published, post.text) for post in page.posts] == [("ida", AT, WORDS)]


def test_its_id_is_read() -> None:
    assert seen(POSTS["classes say what is what"]).posts[0].id == "71"


def test_what_is_not_signed_or_speaks_of_no_replies_is_no_thread() -> None:
    unsigned = f'<div class="post"><div class="postBody">{WORDS}</div><time datetime="2026-03-04T10:15:00Z"></time></div>'
    assert seen(unsigned).kind is not PageKind.THREAD
    assert seen(ARTICLE, "https://news.example/2026/humming-radio").kind is not PageKind.THREAD


ARTICLE = f"<div><b>ida</b> <i>2026-03-04 10:15</i><div>{WORDS}</div></div>"


@pytest.mark.parametrize(
    "url", ["https://forum.example/t/1", "https://boards.example/viewtopic.php?id=7", "https://talk.example/discussion/7/hum"]
)
def test_an_address_of_threads_on_a_host_of_forums_is_enough(url: str) -> None:
    (post,) = seen(ARTICLE, url).posts
    assert (post.author, post.published, post.text) == ("ida", AT, WORDS)


def test_a_link_that_leads_elsewhere_is_no_author() -> None:
    assert seen(f'<a href="/post">Post a message</a> <i>2026-03-04 10:15</i><div>{WORDS}</div>').kind is not PageKind.THREAD


def test_a_name_stands_behind_a_linked_picture() -> None:
    author = '<a href="/user/5/info"><img src="/a/5.webp"></a><span>ida</span>'
    page = seen(f'<div class="item">{author}<small>2026-03-04 10:15</small><p>{WORDS}</p></div>')
    assert [(post.author, post.published, post.text) for post in page.posts] == [("ida", AT, WORDS)]


def test_a_name_stands_above_what_is_told_of_a_member() -> None:
    date = "<tr><td colspan=2><span class=date>04/03/2026 10:15:00</span> Subject: Humming radio</td></tr>"
    about = "<span>Junior Member<br>Joined: 03/01/2012 00:00:00<br>Messages: 20</span>"
    text = f"<tr><td><span class=genmed><b>ida</b></span><br>{about}</td><td><span class=postbody>{WORDS}</span></td></tr>"
    page = seen(f"<table><tr><th>Author</th><th>Message</th></tr>{date}{text}</table>")
    assert [(post.author, post.published, post.text) for post in page.posts] == [("ida", AT, WORDS)]


def test_what_stands_below_a_line_of_underscores_is_a_signature() -> None:
    signed = POSTS["a bold name, no classes"].replace(WORDS, f"{WORDS}<br><br>____________________<br>Two wells, one pump")
    assert [post.text for post in seen(signed).posts] == [WORDS]


ANSWER = "Mine did that until I put a filter between the two of them."


def test_a_question_and_its_only_answer_are_two_posts() -> None:
    body = (
        f'<div class="topic"><div class="head">作者 <a href="/user/ida">ida</a> <b>2026-03-04</b></div>'
        f'<div class="topic_text">{WORDS}</div></div><div class="panel"><a href="/user/walter">walter</a> <i>2026-03-05</i>'
        f'<section class="reply_content">{ANSWER}</section></div>'
    )
    assert [(post.author, post.text) for post in seen(body).posts] == [("ida", WORDS), ("walter", ANSWER)]


def test_rows_that_are_links_below_a_question_are_no_posts() -> None:
    def item(kind: str, who: str, text: str) -> str:
        return (
            f'<div class="{kind}"><div class="{kind}-content">{text}</div><span class="meta">by <a href="/user/{who}">{who}</a> '
            "<time datetime='2026-03-04T10:15:00Z'>then</time></span></div>"
        )

    similar = "".join(item("item", f"may{n}", f'<a href="/{n}">Lamp number {n} hums</a>') for n in range(5))
    page = seen(
        f'<div class="a">{item("question", "ida", WORDS)}</div><div class="b">{item("answer", "walter", ANSWER)}</div>{similar}'
    )
    assert [(post.author, post.text) for post in page.posts] == [("ida", WORDS), ("walter", ANSWER)]


def test_one_post_and_a_list_of_others_is_one_post() -> None:
    similar = "".join(
        f'<li class="t"><a href="/t/{n}">Lamp number {n} hums</a> <a class="user" href="/user/m{n}">m{n}</a> '
        f"<time>2025-0{n}-03</time></li>"
        for n in range(1, 6)
    )
    body = f"{POSTS['classes say what is what']}<ul>{similar}</ul>"
    assert [(post.author, post.published, post.text) for post in seen(body).posts] == [("ida", AT, WORDS)]


@pytest.mark.parametrize("name", ["classes say what is what", "the date stands before the name", "the member once more"])
def test_boxes_of_newest_threads_and_of_who_is_there_are_no_posts(name: str) -> None:
    newest = "".join(
        f'<li class="row"><a class="title" href="/t/{n}">Lamp number {n} hums</a><div class="meta"><a href="/user/m{n}">m{n}</a> '
        f'<span class="day">2026-11-0{n} 10:00</span></div></li>'
        for n in range(1, 9)
    )
    here = ", ".join(f'<a href="/user/m{n}">m{n}</a>' for n in range(1, 7))
    page = seen(f"<div>{POSTS[name]}</div><aside><ul>{newest}</ul><p>{here}</p></aside>")
    assert [(post.author, post.published, post.text) for post in page.posts] == [("ida", AT, WORDS)]


def test_a_profile_above_is_more_than_a_word_before_the_date() -> None:
    """The row of the text has a rank and the date, the row above it the author."""
    left = "<td class=odd><div class=rank>Just popping in</div><div>Joined:<br>2012/1/3</div></td>"
    body = (
        f"<table><tr><th><div><a href='/userinfo.php?uid=5'>ida</a></div></th><th>Humming radio</th></tr>"
        f"<tr>{left}<td class=even><div class=comText>{WORDS}</div><p>Posted on: 2026/3/4 10:15</p></td></tr></table>"
        "<a href=/r>Reply</a>"
    )
    assert [(post.author, post.published, post.text) for post in seen(body).posts] == [("ida", AT, WORDS)]


def test_the_text_is_the_inner_one_of_two_elements_that_are_called_so() -> None:
    body = (
        f'<article id="main-content"><div class="head"><h1>Humming radio</h1><b>Answered</b></div><section><div class="info">'
        f'<span><a href="/profiles/5">ida</a></span><time datetime="2026-03-04T10:15:00Z">then</time></div>'
        f'<div class="post-body"><p>{WORDS}</p></div></section></article><h2>0 comments</h2>'
    )
    assert [(post.author, post.text) for post in seen(body).posts] == [("ida", WORDS)]


FIELD = '<form><input type="text" name="q"></form>'
MENU = (
    "".join(f'<a href="/f/{n}">Section {n}</a> ' for n in range(6))
    + "<p>Rules of this house, and what else there is to know.</p>"
)


def column(inner: str) -> str:
    """The frame of a page, whose class says that it has the text, with a menu, a search field and a form for answers."""
    return f'<div id="page-body" class="page-body">{MENU}{FIELD}<h2>Humming radio</h2>{inner}<p>Jump to another board</p></div>'


@pytest.mark.parametrize(
    "around",
    [
        '<p class="author">by <a href="/user/5">ida</a> <i>2026-03-04 10:15</i></p><div class="content">{}</div>',
        '<dl class="details"><dt><a href="/user/5">ida</a></dt><dd>Joined: 2011-11-17</dd></dl><p class="author">'
        '<a class="said" href="?p=7#p7">2026-03-04 10:15</a></p><div class="content">{}</div>',
        '<div class="content">{}</div><div class="who">2026-03-04 10:15 <a href="/user/5">ida</a></div>',
    ],
    ids=["above", "in a column, the date is a link", "below"],
)
@pytest.mark.parametrize("other", ["", '<div class="content">Donate now: there are many ways to do that, and all help us.</div>'])
def test_the_frame_of_a_page_is_not_the_text_of_its_post(around: str, other: str) -> None:
    """A box that is called a text, too, is further from the author and the date."""
    page = seen(f'{other}{column(f"<div class=post>{around.format(WORDS)}</div>")}<a href="/reply">Reply</a>')
    assert [(post.author, post.published, post.text) for post in page.posts] == [("ida", AT, WORDS)]


def test_who_is_named_within_a_text_did_not_write_it() -> None:
    text = f'<div class="text">Ask <a class="user" href="/user/9">walter</a>. {WORDS}</div>'
    side = '<div class="side"><a href="/user/5">ida</a> Posts: 8</div>'
    page = seen(f'<div class="post"><i>2026-03-04 10:15</i>{text}{side}</div><a href="/reply">Reply</a>')
    assert [(post.author, post.text) for post in page.posts] == [("ida", f"Ask walter. {WORDS}")]


def test_a_title_with_the_author_and_the_date_is_no_post() -> None:
    head = '<div class="head"><p class="p-description"><a href="/user/5">ida</a> <i>2026-03-04 10:15</i></p></div>'
    page = seen(f'{head}<div class="post"><a href="/user/5">ida</a> <i>2026-03-04 10:15</i><div class="text">{WORDS}</div></div>')
    assert [(post.author, post.published, post.text) for post in page.posts] == [("ida", AT, WORDS)]


def test_a_second_post_without_a_date_is_a_post() -> None:
    def post(who: str, at: str, text: str) -> str:
        return f'<div class="post"><a class="user" href="/user/{who}">{who}</a> <i>{at}</i><div class="text">{text}</div></div>'

    page = seen(post("ida", "2026-03-04 10:15", WORDS) + post("walter", "soon", ANSWER))
    assert [(post.author, post.text) for post in page.posts] == [("ida", WORDS), ("walter", ANSWER)]


TICKETS = {
    "https://bugs.example/ticket/7": '<div id="ticket"><p>Opened <a href="/timeline">2026-03-04 10:15</a></p><h2>#7 Hum</h2>'
    '<table><tr><th>Reported by:</th><td><span class="author">ida</span></td><th>Owned by:</th><td>walter</td></tr></table>'
    f'<div class="description"><h3>Description</h3><div><p>{WORDS}</p></div></div></div>',
    "https://bugs.example/view.php?id=7": '<table class="bug"><tr><th>ID</th><td>7</td><th>Date</th><td>2026-03-04 10:15</td>'
    '</tr><tr><th>Reporter</th><td><a href="/view_user_page.php?id=9">ida</a></td><th>Assigned To</th><td></td></tr>'
    f'<tr><th>Description</th><td colspan=3 class="bug-description">{WORDS}</td></tr></table><table class="bugnotes"></table>',
}


@pytest.mark.parametrize("url", TICKETS)
def test_a_ticket_that_nobody_answered_is_a_thread(url: str) -> None:
    page = seen(TICKETS[url], url)
    assert [(post.author, post.published) for post in page.posts] == [("ida", AT)]
    assert page.posts[0].text.endswith(WORDS)
