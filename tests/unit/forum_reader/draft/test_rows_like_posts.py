"""Boards whose rows look like posts: each shows who began a thread, who wrote last in it, and when."""

from __future__ import annotations

import tomllib
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from forum_reader import FetchedPage, draft_site
from forum_reader.definition import load
from forum_reader.definition.load import site_of
from forum_reader.definition.page_requests import PageRequest
from forum_reader.reading.read_page import read_index, read_list

BASE = "http://board.example"
HTML = (("Content-Type", "text/html; charset=utf-8"),)
FIRST = datetime(2025, 3, 1, 9, 0, tzinfo=UTC)
NAMES = ("Ida", "Bo", "Quentin", "Zoe")
WORDS = ("pump", "filter", "soil", "hum", "aerial", "socket", "roof", "water", "garden", "tile", "brick", "lamp", "wire", "plum")
BOARDS = {"pumps-2": "Pumps & wells", "roofs-3": "Roofs", "gardens-4": "Gardens"}
ROWS = 9


class Forum:
    """A category with two boards, and a board without one. `imported`: boards whose threads began in the same minute, all: there
    the line of a thread's beginning is no text, and the rows look like no posts.
    """

    def __init__(self, imported: Collection[str]) -> None:
        self.imported = imported
        self.threads = {board: range(100 + 20 * n, 100 + 20 * n + ROWS) for n, board in enumerate(BOARDS)}

    def title(self, thread: int) -> str:
        return f"{WORDS[thread % 14]} {WORDS[thread % 13]} of {WORDS[thread % 11]}".capitalize()

    def begun(self, board: str, thread: int) -> datetime:
        return FIRST + timedelta(days=400) if board in self.imported else self.at(thread, 0)

    def at(self, thread: int, number: int) -> datetime:
        return FIRST + timedelta(hours=31 * (thread - 100), minutes=17 * number)

    def count(self, thread: int) -> int:
        return 1 + thread % 4

    def by(self, number: int, date: datetime | None = None) -> str:
        name = f'By: <a href="/member/{number % 4 + 1}/">{NAMES[number % 4]}</a>'
        return f"{name} on {date:%b. %d, %Y, %H:%M}" if date else name

    def last(self, board: str, thread: int) -> str:
        number = self.count(thread) - 1
        link = f'<a href="/forum/{board}/topic/t-{thread}/?post={thread * 10 + number}"><i class="icon"></i></a>'
        return f"{self.by(thread + number)}&nbsp;{link}<br><small>{self.at(thread, number):%b. %d, %Y, %H:%M}</small>"

    def row(self, head: str, counts: tuple[int, ...], last: str) -> str:
        shown = "".join(f'<div class="count">{count}</div>' for count in counts)
        return f'<div class="row line"><div class="name">{head}</div>{shown}<div class="last">{last}</div></div>'

    def box(self, title: str, rows: list[str]) -> str:
        head = f'<div class="row top"><h3>{title}</h3><div>Posts</div><div>Last post</div></div>'
        return f'<div class="card">{head}<div class="rows">{"".join(rows)}</div></div>'

    def board_row(self, board: str) -> str:
        newest = self.threads[board][-1]
        head = f'<a class="board" href="/forum/{board}/">{BOARDS[board]}</a><div class="about">All about {BOARDS[board]}</div>'
        return self.row(head, (ROWS, 3 * ROWS), self.last(board, newest))

    def thread_row(self, board: str, thread: int) -> str:
        link = f'<a class="thread" href="/forum/{board}/topic/t-{thread}/">{self.title(thread)}</a>'
        head = f"{link}<div>{self.by(thread, self.begun(board, thread))}</div>"
        return self.row(head, (self.count(thread) - 1, 0), self.last(board, thread))

    def post(self, thread: int, number: int) -> str:
        text = " ".join(WORDS[(thread + number * k) % 14] for k in range(1, 12 + number)).capitalize() + "."
        head = f"<h4>{self.title(thread)}</h4><p><small>{self.by(thread + number, self.at(thread, number))}</small></p>"
        return f'<div class="post" id="{thread * 10 + number}">{head}<div class="post-content"><p>{text}</p></div></div>'

    def page(self, path: str) -> str | None:
        first, second, alone = map(self.board_row, BOARDS)
        category = self.box('<a href="/forum/first-1/">First category</a>', [first, second])
        parts = path.strip("/").split("/")
        if path == "/":
            return self.framed("Forum", category + self.box("Forums", [alone]))
        if path == "/forum/first-1/":
            return self.framed("First category", f"<h1>First category</h1>{category}")
        board = parts[1] if parts[0] == "forum" and len(parts) > 1 else ""
        if board not in BOARDS:
            return None
        if len(parts) == 2:
            rows = [self.thread_row(board, one) for one in reversed(self.threads[board])]
            return self.framed(BOARDS[board], f"<h1>{BOARDS[board]}</h1>{self.box('Topics', rows)}", board)
        thread = int(parts[3].removeprefix("t-"))
        posts = "".join(self.post(thread, n) for n in range(self.count(thread)))
        return self.framed(self.title(thread), f"<h1>{self.title(thread)}</h1>{posts}", board)

    def framed(self, title: str, body: str, board: str = "") -> str:
        above = f' <a href="/forum/{board}/">{BOARDS[board]}</a>' if board else ""
        crumbs = f'<nav><a href="/">Forum index</a>{above}</nav>'
        return f"<html lang=en><head><title>{title}</title></head><body>{crumbs}{body}</body></html>"

    def fetch(self, page: PageRequest) -> FetchedPage:
        text = self.page(page.url.removeprefix(BASE).partition("?")[0])
        return FetchedPage(page.url, (text or "").encode(), status=200 if text else 404, headers=HTML)


@pytest.mark.parametrize("imported", [(), ("pumps-2",), ("gardens-4",), tuple(BOARDS)], ids=", ".join)
def test_an_index_whose_boards_look_like_threads_is_the_index_of_all_boards(imported: Collection[str]) -> None:
    forum = Forum(imported)
    text = draft_site(f"{BASE}/", fetch=forum.fetch, name="mine")
    site = site_of(load.read(Path("mine.toml"), tomllib.loads(text)))
    index = read_index(site, forum.fetch(PageRequest(url=site.url("index"))))
    assert {one.id: one.name for one in index.forums} == BOARDS
    for board in BOARDS:
        listed = read_list(site, forum.fetch(PageRequest(url=site.list_url(board))), board).threads
        assert {int(one.id): one.title for one in listed} == {one: forum.title(one) for one in forum.threads[board]}
