"""`read_page`: a question and its only answer, and pages without posts."""

from __future__ import annotations

from datetime import UTC, datetime

from forum_reader.page.records import PageKind, SeenPage
from forum_reader.readers.page_reader import read_page

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
WORDS = "My radio hums as soon as the lamp is on, whatever I plug it into. Has anybody cured that?"


def seen(body: str, url: str = "https://forum.example/t/1") -> SeenPage:
    html = f'<html><head><title>Humming radio</title></head><body><h1 class="title">Humming radio</h1>{body}</body></html>'
    return read_page(html, url, now=NOW)


def test_what_is_not_signed_or_speaks_of_no_replies_is_no_thread() -> None:
    unsigned = f'<div class="post"><div class="postBody">{WORDS}</div><time datetime="2026-03-04T10:15:00Z"></time></div>'
    assert seen(unsigned).kind is not PageKind.THREAD
    assert seen(ARTICLE, "https://news.example/2026/humming-radio").kind is not PageKind.THREAD


ARTICLE = f"<div><b>ida</b> <i>2026-03-04 10:15</i><div>{WORDS}</div></div>"


def test_a_link_that_leads_elsewhere_is_no_author() -> None:
    assert seen(f'<a href="/post">Post a message</a> <i>2026-03-04 10:15</i><div>{WORDS}</div>').kind is not PageKind.THREAD


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


def test_a_second_post_without_a_date_is_a_post() -> None:
    def post(who: str, at: str, text: str) -> str:
        return f'<div class="post"><a class="user" href="/user/{who}">{who}</a> <i>{at}</i><div class="text">{text}</div></div>'

    page = seen(post("ida", "2026-03-04 10:15", WORDS) + post("walter", "soon", ANSWER))
    assert [(post.author, post.text) for post in page.posts] == [("ida", WORDS), ("walter", ANSWER)]


def test_posts_that_begin_with_the_title_are_no_tree_of_messages() -> None:
    def post(who: str, day: int, text: str) -> str:
        at = f"2026-03-0{day} 10:15"
        head = f'<div><b>Re: Humming radio</b> by <a class="user" href="/user/{who}">{who}</a>, {at}</div>'
        own = f'<p><a href="/t/1?post={day}">Humming radio</a> {at}</p>'
        return f'<div class="post">{head}<div class="text">Humming radio<br>{text}</div>{own}</div>'

    texts = {"ida": WORDS, "walter": ANSWER, "may": f"{ANSWER} It was a cheap one, and is still in there after two winters."}
    page = seen("".join(post(who, day, text) for day, (who, text) in enumerate(texts.items(), 1)))
    assert {post.author: post.text for post in page.posts} == {who: f"Humming radio\n{text}" for who, text in texts.items()}
