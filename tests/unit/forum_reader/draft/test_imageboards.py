"""Imageboards whose posts are siblings: the opening post in an element of its own, each answer in a table, no title anywhere, a
form for a new post above them, and dates with the year first and the weekday in parentheses.
"""

from __future__ import annotations

import tomllib
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from forum_reader import FetchedPage, draft_site, read_page
from forum_reader.dates.read_date import DateReader
from forum_reader.definition import load
from forum_reader.definition.load import site_of
from forum_reader.definition.page_requests import PageRequest
from forum_reader.reading.page_records import ListedThread
from forum_reader.reading.read_page import read_comments, read_list

BASE = "http://board.example"
FIRST = datetime(2026, 11, 1, 9, 0, 5, tzinfo=UTC)
HTML = (("Content-Type", "text/html; charset=utf-8"),)
FORM = (
    "<form action=post.php method=post><table><tr><td>Name</td><td><input name=name></td></tr><tr><td>Subject</td><td><input"
    " name=subject></td></tr><tr><td>Message</td><td><textarea name=text></textarea></td></tr><tr><td>File</td><td><input"
    " type=file></td></tr><tr><td colspan=2><ul><li>Supported file types are JPG, PNG and GIF.</li><li>Images greater than"
    " 250x250 will be thumbnailed.</li></ul></td></tr></table></form>"
)
WORDS = (
    "pump", "filter", "soil", "hum", "aerial", "socket", "roof", "water", "garden", "tile", "brick", "lamp", "wire", "belt",
    "plum",
)  # fmt: skip


class Board:
    """Nine threads of one to six posts; all of one thread's posts in a minute, often by the same author."""

    def __init__(self, form: str = "%y/%m/%d(%a)%H:%M:%S") -> None:
        self.form = form
        self.threads = {100 + 20 * n: [100 + 20 * n + m for m in range(1 + 5 * (n % 3))] for n in range(9)}

    def text(self, number: int) -> list[str]:
        return [" ".join(WORDS[(number * k + line) % 15] for k in range(1, 9 + number % 11)).capitalize() for line in (0, 1)]

    def at(self, number: int) -> datetime:
        return FIRST + timedelta(days=number // 20, seconds=number % 20)

    def shown(self, thread: int, number: int) -> str:
        where = f"/b/res/{thread}.html"
        head = (
            f'<label><input type=checkbox name="delete[]" value={number}> <span class=postername>{("Ida", "Bob")[number % 7 > 4]}'
            f"</span> {self.at(number).strftime(self.form)}</label> <span class=reflink><a href='{where}#{number}'>No.</a>"
            f"<a href='{where}#q{number}'>{number}</a></span>"
        )
        text = f"<div class=message>\n{'<br>'.join(self.text(number))}<br>\n</div>"
        if number == thread:
            return f"<div id=post{number} class=op>{head} [<a href='{where}'>Reply</a>] {text}</div>"
        return f"<table><tr><td class=reply id=post{number}>{head}{text}</td></tr></table>"

    def page(self, path: str) -> str | None:
        if path == "/b/":
            newest = sorted(self.threads.items(), key=lambda one: -max(one[1]))
            parts = ["".join(self.shown(thread, one) for one in (posts[0], *posts[1:][-2:])) for thread, posts in newest]
            return self.framed("<hr>".join(parts))
        number = path.removeprefix("/b/res/").removesuffix(".html")
        posts = self.threads.get(int(number)) if number.isdigit() else None
        return self.framed("".join(self.shown(int(number), one) for one in posts)) if posts else None

    def framed(self, body: str) -> str:
        return (
            f"<html><head><title>Random</title></head><body><div class=logo>Random</div><div class=postarea>{FORM}</div><hr>"
            f"<form id=delform method=post><div id=posts>{body}</div><hr>Delete Post <input type=password name=password></form>"
            "</body></html>"
        )

    def fetch(self, page: PageRequest) -> FetchedPage:
        text = self.page(page.url.removeprefix(BASE))
        return FetchedPage(page.url, (text or "").encode(), status=200 if text else 404, headers=HTML)


@pytest.mark.parametrize("form", ["%y/%m/%d(%a)%H:%M:%S", "%m/%d/%y (%a) %H:%M:%S"])
def test_each_thread_is_read_from_its_first_words_on(form: str) -> None:
    board = Board(form)
    site = site_of(load.read(Path("mine.toml"), tomllib.loads(draft_site(f"{BASE}/b/", fetch=board.fetch, name="mine"))))

    def listed() -> dict[str, ListedThread]:
        url = site.list_url(site.forums[0])
        return {one.id: one for one in read_list(site, board.fetch(PageRequest(url=url)), site.forums[0]).threads}

    before = listed()
    titles = {str(thread): " ".join(board.text(thread)) for thread in board.threads}
    assert {one.id: one.title for one in before.values()} == titles
    for thread, posts in board.threads.items():
        read = read_comments(site, board.fetch(PageRequest(url=f"{BASE}/b/res/{thread}.html")), str(thread), None)
        assert read.post is not None
        assert read.post.title == titles[str(thread)]
        assert [read.post.body, *(one.body for one in read.comments)] == ["\n".join(board.text(one)) for one in posts]
        assert [read.post.created_at, *(one.created_at for one in read.comments)] == [board.at(one) for one in posts]
        assert [one.id for one in read.comments] == list(map(str, posts[1:]))
    for thread in (100, 120):  # of one post, and of six
        board.threads[thread].append(thread + 19)
        after = listed()
        assert {id_ for id_ in after if after[id_].token != before[id_].token} == {str(thread)}
        before = after


@pytest.mark.parametrize("thread", [120, 140])
def test_a_form_above_the_posts_is_part_of_none(thread: int) -> None:
    board = Board()
    read = read_page(board.page(f"/b/res/{thread}.html") or "", f"{BASE}/b/res/{thread}.html")
    posts = [one for post in read.posts for one in (post, *post.comments)]
    assert [one.text for one in posts] == ["\n".join(board.text(one)) for one in board.threads[thread]]
    assert [one.id for one in posts] == list(map(str, board.threads[thread]))


@pytest.mark.parametrize("language", ["en", "ja", "de", None])
@pytest.mark.parametrize(
    "text",
    [
        "26/11/29(Sun)12:05:41", "26/11/29(日)12:05:41", "11/29/26(Sun)12:05:41", "11/29/26 (Sun) 12:05:41",
        "29.11.26(Sun)12:05:41", "2026/11/29(Sun) 12:05:41", "2026/11/29(日) 12:05:41.77", "2026-11-29(Sun)12:05:41",
    ],
)  # fmt: skip
def test_the_weekday_decides_the_order(text: str, language: str | None) -> None:
    reader = DateReader(datetime(2026, 11, 30, tzinfo=UTC), language=language, time_zone="UTC")
    assert reader.read(text) == (datetime(2026, 11, 29, 12, 5, 41, tzinfo=UTC), True)
