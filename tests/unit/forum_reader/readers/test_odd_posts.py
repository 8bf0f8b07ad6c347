"""`read_page`: posts that are made otherwise than their neighbours, on pages of no software that is known."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from forum_reader.fields import post_marks
from forum_reader.page.records import PageKind, SeenPage
from forum_reader.readers.page_reader import read_page

URL = "https://forum.example/t/1"
NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
WORDS = (
    "The radio hums as soon as the lamp is on, whatever I plug it into.",
    "Mine did that until I put a filter between the two of them.",
    "A longer aerial helped here, and it costs next to nothing.",
    "Try another socket first, since they may share one fuse.",
    "That was it: the socket by the window is on another fuse.",
    "Good to hear, and thanks for telling us how it went.",
)


def seen(body: str) -> SeenPage:
    return read_page(f"<html><head><title>Humming radio</title></head><body>{body}</body></html>", URL, now=NOW)


def test_a_name_that_is_no_element_is_read() -> None:
    names = ['<a href="/ida" class="user">ida</a>', '<a href="/walter" class="user">walter</a>', "Nobody"] * 2
    rows = "".join(
        f'<tr><td class="head"><a href="/t/1#{n}">Re: Humming radio</a> by {name}: <span>2026-03-0{n + 1} 10:00</span></td></tr>'
        f'<tr><td class="text" id="p{n}00"><div>{text}</div></td></tr>'
        for n, (name, text) in enumerate(zip(names, WORDS, strict=True))
    )
    page = seen(f"<table>{rows}</table>")
    assert [post.author for post in page.posts] == ["ida", "walter", "Nobody"] * 2
    assert [post.text for post in page.posts] == list(WORDS)


def test_a_picture_without_words_has_no_text() -> None:
    texts = [*WORDS[:3], '<img src="/cat.jpg">', *WORDS[4:]]
    rows = "".join(
        f'<div class="post" id="p{n}00"><h3>Re: Humming radio</h3><p class="by"><a href="/u/ann{n}">ann{n}</a>'
        f", 2026-03-0{n + 1} 10:00"
        f'</p><div class="content">{text}</div></div>'
        for n, text in enumerate(texts)
    )
    assert [post.text for post in seen(rows).posts] == [*WORDS[:3], "", *WORDS[4:]]


def test_a_short_answer_on_another_level_is_not_its_heading() -> None:
    def answer(n: int, text: str, inner: str = "") -> str:
        to = f'<div class="reply-author"><span>in reply to </span><a href="/user/bob{n}">bob{n}</a></div>' if n else ""
        return (
            f'<div class="item"><div class="head"><a href="/user/ann{n}">ann{n}</a>{to}'
            f'<time datetime="2026-03-0{n + 1}T10:00:00Z">March {n + 1}</time></div>'
            f'<div class="text-content"><span><p>{text}</p></span></div></div>{inner}'
        )

    short = [answer(4, "Thanks"), answer(5, WORDS[5])]
    rows = "".join(answer(n, WORDS[n]) for n in range(4)) + "".join(f'<div class="sub">{one}</div>' for one in short)
    assert [post.text for post in seen(rows).posts] == [*WORDS[:4], "Thanks", WORDS[5]]


def test_an_opening_post_whose_text_stands_below_its_head_is_whole() -> None:
    answers = "".join(
        f'<div class="answer"><a href="/user/ann{n}">ann{n}</a><time datetime="2026-03-0{n + 1}T10:00:00Z">March {n + 1}</time>'
        f'<div class="words">{WORDS[n]}</div></div>'
        for n in range(1, 6)
    )
    head = (
        '<div class="top"><header><h1>Humming radio</h1><a href="/user/ida">ida</a>'
        f'<time datetime="2026-03-01T10:00:00Z">March 1</time></header><div>{WORDS[0]}</div></div>'
    )
    page = seen(head + f"<div>{answers}</div>")
    assert [post.text for post in page.posts] == list(WORDS)
    assert page.posts[0].author == "ida"


def test_a_name_before_its_date_in_one_element_is_the_author() -> None:
    rows = "".join(
        f'<div class="mt-{n % 2}"><div class="post">\n      <div class="line">\n   name{n} ·\n'
        f'   <span>03/0{n + 1}/2026 19:4{n}</span></div><div class="prose">{text}</div></div></div>'
        for n, text in enumerate(WORDS)
    )
    assert [post.author for post in seen(rows).posts] == [f"name{n}" for n in range(6)]


def test_what_was_done_and_the_title_of_a_reply_are_no_names() -> None:
    """`answered`, in bold before the date; `Re: Humming radio` above `by ida on 3 March`."""
    for head in (
        '<p><strong>answered</strong> <i>{at}</i> <a href="/users/{who}">{who}</a></p>',
        "<h3>Re: Humming radio</h3>by {who} on {at}",
        '<p><a class="nick" href="/@{who}"><b>{who}</b> <span>@{who}@social.example</span></a> <i>{at}</i></p>',
        '<p><b class="author">{who}</b> <i>{at}</i> <span>a écrit :</span></p>',
        "<p><b>{who} dit :</b> <i>{at}</i></p>",
        "<p>on {at} by <b>{who}</b></p>",
    ):
        names = ["ida", "walter", "may"] * 2
        rows = "".join(
            f'<div class="c">{head.format(who=name, at=f"2026-03-0{n + 1} 10:00")}<div class="t">{text}</div></div>'
            for n, (name, text) in enumerate(zip(names, WORDS, strict=True))
        )
        assert [post.author for post in seen(rows).posts] == names, head


def answers(text: str, *, date: str = "<time datetime='2026-03-0{n}T10:00:00Z'>March {n}</time>") -> str:
    return "".join(
        f'<div class="answer"><a href="/user/ann{n}">ann{n}</a>{date.format(n=n)}{text.format(WORDS[n])}</div>'
        for n in range(1, 6)
    )


def test_an_opening_post_whose_date_is_only_about_right_is_one() -> None:
    """`over 1 year ago` is up to two."""
    rows = answers("<div class=words>{}</div>", date="<a class=day data-date='2025-03-0{n}T10:00:00Z'>over 1 year ago</a>")
    head = '<div class="author"><a href="/user/ida">ida</a></div><div class="day"><span>17 months ago</span></div>'
    page = seen(f'<div class="top"><div class="first">{head}<div class="text">{WORDS[0]}</div></div><ul>{rows}</ul></div>')
    assert [post.text for post in page.posts] == list(WORDS)


def test_an_opening_post_of_several_elements_is_read_where_names_of_answers_stand_before_their_dates() -> None:
    head = '<h6 class="meta">Posted by: <a href="/author/ida/">ida</a> 10 months, 2 weeks ago</h6>'
    rows = "".join(
        f'<div class="c" id="c{n}"><h4>ann{n % 3} <small>9 months, {n} days ago</small></h4><p>{WORDS[n]}</p></div>'
        for n in range(1, 6)
    )
    page = seen(f'<div class="main">{head}<p>{WORDS[0]}</p><div id="cs">{rows}</div></div>')
    assert [post.author for post in page.posts] == ["ida", *(f"ann{n % 3}" for n in range(1, 6))]
    assert [post.text for post in page.posts] == list(WORDS)


def test_an_opening_post_of_several_paragraphs_in_a_class_that_misleads_is_whole() -> None:
    head = '<div class="asked">Asked by <a href="/user/ida">ida</a> <time datetime="2026-03-01T09:00:00Z">on March 1</time></div>'
    opening = (
        f'<h1>Humming radio</h1>{head}<div class="report"><p>{WORDS[0]}</p><p>It is an old one.</p></div><dl><dt>Status</dt></dl>'
    )
    page = seen(f"{opening}{answers('<div class=comment-text><p>{}</p><p>So much for that.</p></div>')}")
    assert [post.text for post in page.posts] == [
        f"{text}\n\n{end}" for text, end in zip(WORDS, ["It is an old one.", *["So much for that."] * 5], strict=True)
    ]


def test_classes_that_lay_out_text_say_nothing() -> None:
    """A question and its answer, made otherwise each, with `text-break` on links and headings."""
    assert not any(map(post_marks.suggests_body, ("h3 text-wrap text-break", "btn text-body", "content-center")))
    assert all(map(post_marks.suggests_body, ("text text-break", "post-text", "content")))
    date = "<time class='link-secondary' datetime='2026-03-0{1}T10:00:00Z'>March {1}</time>"
    by = '<div class="small text-secondary"><a class="me-1 text-break" href="/users/{0}">{0}</a><b>133</b></div>' + date
    question = (
        f'<h1 class="text-wrap text-break"><a href="/q/1">Humming radio</a></h1><div class="small">{by.format("ida", 1)}</div>'
    )
    question += f'<div class="viewer"><article class="fmt text-break">{WORDS[0]}</article></div>'
    buttons = '<button class="btn text-body">3</button><h5 class="text-muted">1 answer</h5>'
    edited = f"<div class=col><a href='/q/1/timeline'>{date.format('walter', 3)}</a></div>"
    signed = f'<div class="row">{edited}<div class="col-4">{by.format("walter", 2)}</div></div>'
    answer = f'<article class="fmt">{WORDS[1]}</article>{buttons}{signed}'
    page = seen(f'<div class="main"><div>{question}{buttons}</div><div class="item py-4">{answer}</div></div>')
    assert [(post.author, post.text) for post in page.posts] == [("ida", WORDS[0]), ("walter", WORDS[1])]


def test_an_opening_post_whose_author_answered_on_the_same_day_is_no_heading() -> None:
    def whole(opened: str) -> list[str]:
        answers = "".join(
            f'<h3 class="change" id="c{n}">by <a class="user" href="/user/{name}">{name}</a>, <i>2026-11-{n + 15} 10:15</i></h3>'
            f'<div class="comment"><p>{WORDS[n]}</p></div>'
            for n, name in ((1, "ida"), (2, "walter"), (3, "nora"), (4, "walter"))
        )
        head = f'<div class="date"><i>2026-11-16 {opened}</i></div><a class="user" href="/user/ida">ida</a>'
        page = seen(f'<div id="ticket">{head}<div class="text"><p>{WORDS[0]}</p></div></div><div id="log">{answers}</div>')
        return [post.text for post in page.posts]

    assert whole("08:03") == list(WORDS[:5])
    assert whole("10:15") == list(WORDS[1:5])


def test_many_links_and_dates_of_one_member_beside_a_post_are_not_several_posts() -> None:
    rows = "".join(
        f'<table class="post"><tr><td class="side"><a href="/space-uid-{n}41.html">ida{n}</a><p><a href="/space-uid-{n}41.html">'
        f"{n}00 posts</a></p><p>Joined 2005-06-1{n}</p><p>Seen 2014-05-0{n}</p>"
        + "".join(f'<a href="/home.php?do={do}&uid={n}41" class="user">{do}</a> ' for do in ("friend", "mail", "blog", "album"))
        + f"<p>Joined 2005-06-1{n}, seen</p><p>2014-05-0{n}</p><p>Level since 2010-01-0{n}</p></td><td>"
        f"<em>2009-06-2{n} 18:06:32</em><div class='text'>{text}</div></td></tr></table>"
        for n, text in enumerate(WORDS, 1)
    )
    assert [post.text for post in seen(rows).posts] == list(WORDS)


def test_a_name_next_to_a_date_with_spaces_of_the_markup_stands_in_no_sentence() -> None:
    space = "\n" + " " * 40
    rows = "".join(
        f"<div class=box><div class=left><a href=/t/{n}>Radio {n}, humming</a><br><strong>Last:</strong> {text}</div>"
        f"<div>{space}2026-03-0{n + 1} 10:00{space}<div class=thread_user>von: ann{n}{space}</div></div></div>"
        for n, text in enumerate(WORDS)
    )
    page = seen(rows)
    assert [row.title for row in page.rows] == [f"Radio {n}, humming" for n in range(6)]


def test_the_numbers_of_posts_are_no_titles() -> None:
    for label in ("post #{} of 23", "Beitrag {} von 23", "#48217{}"):
        posts = "".join(
            f"<div class=post id=post{n}><a class=user href=/u/{n % 2}>ann{n % 2}</a> <b><a href=/{n}-post.html>"
            f"{label.format(n)}</a></b> 2026-03-0{n + 1} 10:00<div class=body>{text}</div></div>"
            for n, text in enumerate(WORDS)
        )
        assert [post.text for post in seen(posts).posts] == list(WORDS)


def test_menus_above_and_below_that_link_to_a_member_are_no_posts() -> None:
    links = "".join(f'<li>- <a href="/{name}.php">{name.title()}</a></li>' for name in ("search", "mail", "rules", "faq", "help"))
    menu = f'<ul class="menu">{links}<li>- <a class="author" href="/member.php?u=7">Your page</a></li></ul>'
    rows = "".join(
        f'<table class="post" id="post{n}00"><tr><td><dl><dt class="author">ida{n}</dt><dd>{n} March 2019</dd></dl></td>'
        f'<td class="body">{text * 3}</td></tr><tr><td class="date">2026-03-0{n + 1} 10:00</td></tr></table>'
        for n, text in enumerate(WORDS)
    )
    page = seen(f"{menu}<div>{rows}</div>{menu}")
    assert [post.author for post in page.posts] == [f"ida{n}" for n in range(6)]


@pytest.mark.parametrize("newcomers", [0, 1])
def test_short_posts_next_to_what_else_their_authors_wrote_are_a_thread(newcomers: int) -> None:
    others = [[f"An old thread {n}{k} about lamps" for k in range(5 if n < 6 - newcomers else 0)] for n in range(6)]
    rows = "".join(
        f'<div class="post"><div class="side"><a href="/user/ida{n}">ida{n}</a><ul>'
        + "".join(f'<li><a href="/t/{n}{k}00">{title}</a></li>' for k, title in enumerate(titles))
        + f'</ul></div><p class="by">2026-03-0{n + 1} 10:00</p><div class="text">{text[:55]}</div></div>'
        for n, (titles, text) in enumerate(zip(others, WORDS, strict=True))
    )
    page = seen(rows)
    assert page.kind is PageKind.THREAD
    assert [post.text for post in page.posts] == [text[:55] for text in WORDS]


def test_text_after_an_anchor_that_is_not_closed_is_no_link() -> None:
    rows = "".join(
        f'<li class="comment" id="c{n}00"><a name="comments-{n}00"><div class="box"><div class="info"><b>ida{n}</b><br>'
        f'<em>2{n} marzo 2026 - 18:47</em><p>{text}</p></div><div class="reply"><a href="/login">Reply</a></div></div></li>'
        for n, text in enumerate(WORDS)
    )
    posts = seen(f'<p>{WORDS[0]} {WORDS[1]}</p><ol class="commentlist">{rows}</ol>').posts
    assert [(post.author, post.text) for post in posts] == [(f"ida{n}", text) for n, text in enumerate(WORDS)]


@pytest.mark.parametrize("label", ["walter_jones said:", "In reply to walter_jones"])
def test_posts_that_name_whom_they_answer_are_no_other_threads(label: str) -> None:
    quote = f"<div class=to><a href=/t/goto?id=300>{label}</a></div>"
    rows = "".join(
        f'<div class="post" id="p{n}00"><a class="user" href="/user/ida{n}">ida{n}</a>'
        f'<time datetime="2026-03-0{n + 1}T10:00">x</time>{quote if n > 3 else ""}<div class="text">{text}</div></div>'
        for n, text in enumerate(WORDS)
    )
    assert [post.author for post in seen(rows).posts] == [f"ida{n}" for n in range(6)]
