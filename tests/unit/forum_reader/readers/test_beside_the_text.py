"""What stands around the text of posts and is not theirs, on small pages of our own making, after the forms of public ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

from forum_reader.readers.page_reader import read_page

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)


@dataclass(frozen=True)
class Post:
    """A post: the paragraphs of its text, what its author writes below each, and since when the author is a member."""

    n: int
    author: str
    at: datetime
    paragraphs: tuple[str, ...]
    signature: str
    since: str

    @property
    def markup(self) -> str:
        return "".join(f"<p>{one}</p>" for one in self.paragraphs)

    @property
    def lines(self) -> str:
        return "<br><br>".join(self.paragraphs)


_TEXTS = (
    ("The pump stopped again after two weeks, so we took it apart.", "Has anybody found a worn seal in one of these?"),
    ("Mine makes a noise when it is cold. I ordered another one from the shop in town.",),
    ("Thanks, good to know.",),
    ("Has anybody tried the newer model with the metal housing? Plastic breaks in winter, and nobody repairs it.",),
    ("I have, since Tuesday. It has been quiet so far, and it takes less power than the old one.",),
    ("Thank you, that is good enough for me. The neighbour will be glad about it as well.",),
)
_AUTHORS = ("ida", "Ole_K", "ida", "grundwasser", "Ole_K", "ida")
_ABOUT = {"ida": ("", "March 2011"), "Ole_K": ("Cold water is still water", "May 2004"), "grundwasser": ("Deep.", "June 2019")}
POSTS = [
    Post(n, author, datetime(2023, 3, 5 + 2 * n, 9 + n, 35 - n), paragraphs, *_ABOUT[author])
    for n, (author, paragraphs) in enumerate(zip(_AUTHORS, _TEXTS, strict=True), 1)
]


def _details(p: Post) -> str:
    """A column that says who wrote a post, and no class that says what is what."""
    left = f"<td class=c1>Regular<br>Since: {p.since}<br>Place: Leeds<br>Messages: {p.n * 1_411:,}</td>"
    head = f"<td class=c0>{p.author}</td><td class=c0>Posted: {p.at:%d %B %Y} at {p.at:%I:%M%p}</td>"
    return f"<table class=t><tr class=r1>{head}</tr><tr class=r2>{left}<td class=c2>{p.lines}</td></tr></table>"


def _fonts(p: Post) -> str:
    left = f"<td><font size=2><b>{p.author}</b></font><br><font size=1>Member<br>Posts: {p.n}<br>Since: {p.since}</font></td>"
    head = f"<font size=1 color=#008>posted {p.at:%B %d, %Y %I:%M %p}</font>"
    return f"<tr>{left}<td>{head}<hr><font size=2>{p.lines}</font><p align=right><font size=1>IP: Logged</font></td></tr>"


def _reply_heading(p: Post) -> str:
    head = f"<p class=u><a href=/users/{p.n}>{p.author}</a></p><small title='{p.at:%d %b %Y %H:%M}'>3 years ago</small>"
    said = f"<div class=k><strong>{p.author}</strong> replied to the topic: Pumps</div>"
    return f"<div class=m>{head}<div class=s>{said}<div class=g>{p.markup}</div></div></div>"


def _hidden_copy(p: Post) -> str:
    copy = f"<blockquote><div>Quote from {p.author} on {p.at:%d %b %Y}</div>{p.markup}</blockquote>"
    head = f"<a class=author href=/users/{p.n}>{p.author}</a> <span>{p.at:%d %b %Y %H:%M}</span>"
    text = f"<div class=message><div id=q{p.n} style='display:none;'>{copy}</div>{p.markup}</div>"
    return f"<div class=post id=p{p.n}>{head}{text}</div>"


def _one_element(p: Post) -> str:
    """Author, date and text in one cell."""
    return f"<tr><td><b>{p.author}</b> {p.at:%d.%m.%Y %H:%M}<br><br>{p.lines}</td></tr>"


def _wrote_on(p: Post) -> str:
    return f"<div class=b><h4>{p.author} wrote on {p.at:%d %B %Y, %H:%M}</h4><div class=t>{p.markup}</div></div>"


def _layout_classes(p: Post) -> str:
    date = f"<span title='{p.at:%Y-%m-%dT%H:%M}Z'>3y</span>"
    head = f"<div class='flex gap-2 text-sm'><span class='font-semibold'>{p.author}</span>{date}</div>"
    foot = f"<div class='mt-2 flex gap-4 text-xs text-gray-500'><span>{p.n}</span><span>Reply</span></div>"
    text = f"<div class='mt-1 text-base'>{p.markup}</div>"
    return f"<div class='flex gap-4 py-4'><div class=flex-1>{head}{text}{foot}</div></div>"


def _stamp(p: Post) -> str:
    """A moment that a script turns into words, in an attribute of any name."""
    stamp = int(p.at.replace(tzinfo=UTC).timestamp())
    head = f"<a class=who href=/@{p.author}>{p.author}</a><my-time data-created-ts={stamp}></my-time>"
    return f"<article class=card><header>{head}</header><div class=card__text>{p.markup}</div></article>"


def _legends(p: Post) -> str:
    return f"<fieldset><legend>{p.author} - {p.at:%Y-%m-%d %H:%M}</legend>{p.markup}</fieldset>"


def _question(p: Post) -> str:
    """The opening post is made otherwise than the answers."""
    head = f"<p class=sub><a href=/user/{p.author}>{p.author}</a> <abbr title='{p.at:%d %B %Y %H:%M}'>1,300 days ago</abbr></p>"
    if p.n == 1:
        return f"<div class=main>{head}</div><div class=out>{p.markup}</div><h3>Answers</h3>"
    return f"<div class=item><div class=in>{head}<div class=out>{p.markup}</div></div></div>"


def _feet(p: Post) -> str:
    """Tags, author, date and buttons stand in one element with the text, and their classes say so."""
    tags = "<div class='p--tags'><a href=/tags/4>pumps</a></div>" * (p.n == 1)
    date = f"<div title='{p.at:%Y-%m-%dT%H:%M}Z'>posted over 3 years ago</div>"
    meta = f"<div class='p--meta'>{date}<a class=user-link href=/users/{p.n}>{p.author}</a></div>"
    tools = f"<div class='p--actions'><a href=/p/{p.n}>Copy Link</a></div><div class='p--votes'><h4>{p.n} votes</h4></div>"
    return f"<div class=p id=a-{p.n}><div class='p--content'><div class='p--body'>{p.markup}{tags}{meta}{tools}</div></div></div>"


Skin = Callable[[Post], str]
SKINS: tuple[Skin, ...] = (
    _details, _fonts, _reply_heading, _hidden_copy, _one_element, _wrote_on, _layout_classes, _stamp,
    _legends, _question, _feet,
)  # fmt: skip


def _page(rows: str) -> str:
    tag = "table" if rows.startswith("<tr") else "div"
    foot = "<div><p>All times are UTC. Made by a program that nobody knows.</p></div>"
    return f"<html lang=en><title>Pumps</title><body><h1>Pumps</h1><{tag}>{rows}</{tag}>{foot}</body></html>"


@pytest.mark.parametrize("skin", SKINS)
def test_posts_are_their_texts_and_no_more(skin: Skin) -> None:
    seen = read_page(_page("".join(map(skin, POSTS))), "https://s.example/t/3", now=NOW)
    assert [one.text.split() for one in seen.posts] == [" ".join(post.paragraphs).split() for post in POSTS]
    assert [one.author for one in seen.posts] == [post.author for post in POSTS]
    assert [one.published for one in seen.posts] == [post.at.replace(tzinfo=UTC) for post in POSTS]


def test_everybody_may_be_anonymous() -> None:
    rows = "".join(
        f"<div class=r id=p{p.n}><span class=n>Anonymous</span> <span class=d>{p.at:%d %b %Y %H:%M}</span>{p.markup}</div>"
        for p in POSTS
    )
    seen = read_page(_page(rows), "https://s.example/t/3", now=NOW)
    assert [one.author for one in seen.posts] == ["Anonymous"] * len(POSTS)


def test_a_rank_is_not_the_name_of_a_guest() -> None:
    rows = "".join(
        f"<div class=m>{who}<span class=w>{p.at:%d %b %Y %H:%M}</span><div class=x>{p.markup}</div></div>"
        for p in POSTS
        for who in (
            [f"<span class=guestname>{p.author}</span> <em>Guest</em>"]
            if p.author == "grundwasser"
            else [f"<a class=memberlink href=/member/{p.author}>{p.author}</a> <em>Member</em>"]
        )
    )
    seen = read_page(_page(rows), "https://s.example/t/3", now=NOW)
    assert [one.author for one in seen.posts] == [post.author for post in POSTS]


def test_a_name_within_a_sentence_is_of_the_text_and_a_separator_is_no_signature() -> None:
    texts = [
        f"<p>Hello <a class=mention href=/user/9>@Ole_K</a>, see below.</p>{p.markup}" if p.author == "ida" else p.markup
        for p in POSTS
    ]
    texts[3] += "<p>--------------------------</p><p>From the manual: open it every year.</p>"
    rows = "".join(
        f"<div class=m><a class=author href=/m/{p.n}>{p.author}</a> <i>{p.at:%d %b %Y %H:%M}</i><div class=x>{text}</div></div>"
        for p, text in zip(POSTS, texts, strict=True)
    )
    seen = read_page(_page(rows), "https://s.example/t/3", now=NOW)
    assert [one.text.startswith("Hello @Ole_K, see below.") for one in seen.posts] == [p.author == "ida" for p in POSTS]
    assert seen.posts[3].text.endswith("From the manual: open it every year.")


def test_a_quote_next_to_the_only_paragraph_is_of_the_text() -> None:
    rows = "".join(
        f"<div class=r id=p{p.n}><a href=/user/{p.author}>{p.author}</a> <i>{p.at:%d %b %Y %H:%M}</i><div class=body>"
        f"{'<blockquote>No seal fits here</blockquote>' * (p.n == 3)}<p>{p.lines}</p></div></div>"
        for p in POSTS
    )
    seen = read_page(_page(rows), "https://s.example/t/3", now=NOW)
    assert [one.text.startswith("No seal fits here") for one in seen.posts] == [p.n == 3 for p in POSTS]
