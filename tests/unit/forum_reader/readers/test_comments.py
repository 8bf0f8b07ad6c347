"""`read_page`: comments below an article, after the markup of blogs, shops and newspapers."""

from __future__ import annotations

from datetime import UTC, datetime

from forum_reader.page.records import SeenPage
from forum_reader.readers.page_reader import read_page

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
SAID = (
    "Mine hummed until I put a filter between the two of them.",
    "A longer aerial helped here, and it costs next to nothing.",
    "Try another socket first, since they may share one fuse.",
    "That was it: the socket by the window is on another fuse.",
    "Good to hear, and thanks for telling us how it went in the end.",
)
NAMES = ("ida", "ben", "eva", "ida", "tom")
ARTICLE = "<p>A radio that hums has often a poor mains filter, which is a matter of two small parts and an hour.</p>" * 12


def seen(body: str) -> SeenPage:
    return read_page(f"<html lang=en><title>Radios</title><body>{body}</body></html>", "https://news.example/radios", now=NOW)


def test_a_date_that_is_text_of_the_element_around_the_comment_is_cut_alone() -> None:
    comments = "".join(
        f"<li class=comment id=comment-48{n}><div class=comment-body><div class=wrapper><div class=extra-wrap>"
        f"<span class=author>{name}</span><br>\n\t\t March {n + 1}, 2026 <p>{text}</p><p>{SAID[n - 1]}</p>"
        f"<p>Greetings, {name}, and so on</p>"
        f"</div></div><div class=wrapper><div class=reply><a href=#comment-48{n}>Reply</a></div></div></div></li>"
        for n, (name, text) in enumerate(zip(NAMES, SAID, strict=True))
    )
    page = seen(f"<div class=entry>{ARTICLE}</div><ol>{comments}</ol>")
    posts = page.posts[-5:]
    assert [post.author for post in posts] == list(NAMES)
    assert [post.published.day for post in posts if post.published] == [1, 2, 3, 4, 5]
    assert [post.text for post in posts] == [
        f"{text}\n\n{SAID[n - 1]}\n\nGreetings, {name}, and so on" for n, (name, text) in enumerate(zip(NAMES, SAID, strict=True))
    ]


def test_comments_with_a_form_each_and_elapsed_time_in_german_are_posts() -> None:
    comments = "".join(
        f"<div class=wc-comment id=wc-{n}><div class=wc-comment-author>{name}</div><div class=wc-comment-text>{text}</div>"
        f"<div class=wc-comment-date>{n + 1} Stunden {5 * n + 2} Minuten her</div><form><input type=text name=m></form></div>"
        for n, (name, text) in enumerate(zip((*NAMES, "max", "pia"), (*SAID, *(f"And {text}" for text in SAID[:2])), strict=True))
    )
    page = seen(f"<div class=entry>{ARTICLE}</div>{comments}")
    assert [(post.author, post.text) for post in page.posts[-7:-2]] == list(zip(NAMES, SAID, strict=True))
    assert all(post.published is not None for post in page.posts[-7:])


def test_a_word_before_a_name_is_no_name() -> None:
    comments = "".join(
        f"<div class=review id=review-{n}><div class=review-author>Von: <b>{name}</b></div>"
        f"<time datetime=2026-03-0{n + 1}>then</time><div class=review-text>{text}</div></div>"
        for n, (name, text) in enumerate(zip(NAMES, SAID, strict=True))
    )
    assert [post.author for post in seen(comments).posts] == list(NAMES)
