"""Boards of the 2ch kind: the front page shows the newest threads, another page lists all, and each thread has several views."""

from __future__ import annotations

import tomllib
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from forum_reader import FetchedPage, draft_site
from forum_reader.definition import load
from forum_reader.definition.load import site_of
from forum_reader.definition.page_requests import PageRequest
from forum_reader.reading.read_page import read_comments, read_list

BASE = "http://board.example"
FIRST = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
WORDS = ("pump", "filter", "soil", "hum", "aerial", "socket", "roof", "water", "garden", "tile", "brick", "lamp", "wire", "plum")
FRONT, NEWEST = 4, 5  # threads on the front page, posts of the list's view


class Board:
    """Fourteen threads of one to nine posts. `view`: what the list's links end with; `whole`: the view that shows all."""

    def __init__(self, view: str, whole: str) -> None:
        self.view, self.whole = view, whole
        self.threads = {1772000000 + 977 * n: 1 + 4 * (n % 3) for n in range(14)}

    def title(self, thread: int) -> str:
        return f"{WORDS[thread % 14]} {WORDS[thread % 13]} {thread % 1000}".capitalize()

    def text(self, thread: int, number: int) -> str:
        return " ".join(WORDS[(thread + number * k) % 14] for k in range(1, 9 + number % 7)).capitalize() + "."

    def at(self, thread: int, number: int) -> datetime:
        return FIRST + timedelta(hours=(thread - 1772000000) // 100, minutes=number)

    def posts(self, thread: int, numbers: list[int], foot: str = "") -> str:
        shown = (
            f"<div class=reply><h3><a href=\"javascript:quote('>>{n}',{thread})\">{n}</a> Name: <span class=name>"
            f"{('Anonymous', 'Ida')[n % 3 == 2]}</span> : {self.at(thread, n):%Y-%m-%d %H:%M} ID:x{thread % 7} <span class=del>"
            f'[<a href="javascript:delete_post({thread},{n})">Del</a>]</span></h3>'
            f"<div class=text><p>{self.text(thread, n)}</p></div></div>"
            for n in numbers
        )
        count = self.threads[thread]
        return f"<div class=thread><h2>{self.title(thread)} <small>({count})</small></h2>{''.join(shown)}{foot}</div>"

    def views(self, thread: int) -> str:
        where = f"/board.cgi/{thread}"
        return f'<a href="{where}{self.whole}">Entire thread</a> <a href="{where}{self.view}">Last posts</a>'

    def page(self, path: str) -> str | None:
        newest = sorted(self.threads, reverse=True)
        if path == "/b/":
            parts = (self.posts(one, self.newest(one), f"<p>{self.views(one)}</p>") for one in newest[:FRONT])
            return self.framed("The board", "".join(parts) + '<a href="/b/all.html">All threads</a>')
        if path == "/b/all.html":
            rows = (
                f'<tr><td>{n}:</td><td><a href="/board.cgi/{one}{self.view}">{self.title(one)}</a></td>'
                f"<td>{self.threads[one]}</td><td>{self.at(one, self.threads[one]):%Y-%m-%d %H:%M}</td></tr>"
                for n, one in enumerate(newest, 1)
            )
            return self.framed("The board", f"<h1>The board</h1><table><tbody>{''.join(rows)}</tbody></table>")
        number = path.removeprefix("/board.cgi/")[:10]
        view = path.removeprefix(f"/board.cgi/{number}")
        if not number.isdigit() or int(number) not in self.threads or view not in (self.view, self.whole):
            return None
        thread = int(number)
        numbers = list(range(1, self.threads[thread] + 1)) if view == self.whole else self.newest(thread)
        head = f'<a href="/b/">Return</a> {self.views(thread)}'
        return self.framed(f"{self.title(thread)} - The board", head + self.posts(thread, numbers))

    def newest(self, thread: int) -> list[int]:
        count = self.threads[thread]
        return [1, *range(max(2, count - NEWEST + 2), count + 1)]

    def framed(self, title: str, body: str) -> str:
        return f"<html><head><title>{title}</title></head><body>{body}<form><textarea name=text></textarea></form></body></html>"

    def fetch(self, page: PageRequest) -> FetchedPage:
        text = self.page(page.url.removeprefix(BASE))
        headers = (("Content-Type", "text/html; charset=utf-8"),)
        return FetchedPage(page.url, (text or "").encode(), status=200 if text else 404, headers=headers)


@pytest.mark.parametrize(("view", "whole"), [("/l50", "/"), ("/l50", ""), ("/l50", "/1-"), ("/newest", "/all")])
def test_all_threads_are_listed_and_each_is_read_whole(view: str, whole: str) -> None:
    board = Board(view, whole)
    text = draft_site(f"{BASE}/b/", fetch=board.fetch, name="mine")
    site = site_of(load.read(Path("mine.toml"), tomllib.loads(text)))
    listed = read_list(site, board.fetch(PageRequest(url=site.list_url(site.forums[0]))), site.forums[0]).threads
    assert {int(one.id): one.title for one in listed} == {one: board.title(one) for one in board.threads}
    for one in listed:
        thread, count = int(one.id), board.threads[int(one.id)]
        url = site.url("comments", forum=site.forums[0], thread=one.id, url=one.url)
        read = read_comments(site, board.fetch(PageRequest(url=url)), one.id, None)
        assert read.post is not None
        assert read.post.title == board.title(thread)
        assert [read.post.body, *(one.body for one in read.comments)] == [board.text(thread, n) for n in range(1, count + 1)]
        assert [one.id for one in read.comments] == [f"{thread}/{n}" for n in range(2, count + 1)]
        assert one.reply_count == count - 1
