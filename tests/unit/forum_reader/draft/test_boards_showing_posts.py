"""Boards that show posts themselves, as imageboards do: the page of a board has each thread's first post and its newest."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from forum_reader import FetchedPage, draft_site
from forum_reader.definition import load
from forum_reader.definition.load import site_of
from forum_reader.definition.page_requests import PageRequest
from forum_reader.reading.page_records import ListedThread
from forum_reader.reading.read_page import read_comments, read_list

BASE = "http://board.example"
WORDS = (
    "pump",
    "filter",
    "soil",
    "hum",
    "aerial",
    "socket",
    "roof",
    "water",
    "garden",
    "tile",
    "brick",
    "lamp",
    "wire",
    "belt",
    "plum",
)
HTML = (("Content-Type", "text/html; charset=utf-8"),)


class Board:
    """Nine threads; `link`: the text of the link to a thread, `{}` for its number."""

    def __init__(self, link: str) -> None:
        self.link = link
        self.threads = {100 + 20 * n: [self.post(100 + 20 * n + m) for m in range(1 + 5 * (n % 3))] for n in range(9)}

    def post(self, number: int) -> tuple[int, str]:
        return number, " ".join(WORDS[(number * k) % len(WORDS)] for k in range(1, 9 + number % 11)).capitalize() + "."

    def shown(self, thread: int, post: tuple[int, str], *, listed: bool) -> str:
        number, text = post
        link = f' [<a href="/b/res/{thread}.html">{self.link.format(thread)}</a>]' if listed and number == thread else ""
        head = (
            f"<label><input type=checkbox name=delete value={number}> <span class=postername>Name{number % 3}</span> "
            f"2026/10/{1 + number % 28:02}(Mon)09:{number % 60:02}</label>{link}<blockquote><p>{text}</p></blockquote>"
        )
        return head if number == thread else f'<table><tr><td class=reply id="reply{number}">{head}</td></tr></table>'

    def page(self, path: str) -> str | None:
        if path == "/b/":
            parts = (
                "<div class=thread>"
                + "".join(self.shown(thread, post, listed=True) for post in (posts[0], *posts[1:][-2:]))
                + "</div><hr>"
                for thread, posts in self.threads.items()
            )
            return self.framed("".join(parts))
        number = path.removeprefix("/b/res/").removesuffix(".html")
        posts = self.threads.get(int(number)) if number.isdigit() else None
        return self.framed("".join(self.shown(int(number), one, listed=False) for one in posts)) if posts else None

    def framed(self, body: str) -> str:
        form = "<form><input name=name><textarea name=text></textarea><input type=password name=pass></form>"
        return f"<html><title>Random</title><body><h1>Random</h1>{form}<hr><form>{body}<input type=password></form></body></html>"

    def fetch(self, page: PageRequest) -> FetchedPage:
        text = self.page(page.url.removeprefix(BASE))
        return FetchedPage(page.url, (text or "").encode(), status=200 if text else 404, headers=HTML)


@pytest.mark.parametrize("link", ["Reply", "No.{}"])
def test_a_boards_rows_are_its_threads_and_each_is_read_by_its_own_link(link: str) -> None:
    board = Board(link)
    site = site_of(load.read(Path("mine.toml"), tomllib.loads(draft_site(f"{BASE}/b/", fetch=board.fetch, name="mine"))))

    def listed() -> dict[str, ListedThread]:
        url = site.list_url(site.forums[0])
        return {one.id: one for one in read_list(site, board.fetch(PageRequest(url=url)), site.forums[0]).threads}

    before = listed()
    assert {int(one.id): one.title for one in before.values()} == {thread: posts[0][1] for thread, posts in board.threads.items()}
    for thread, posts in board.threads.items():
        read = read_comments(site, board.fetch(PageRequest(url=f"{BASE}/b/res/{thread}.html")), str(thread), None)
        assert read.post is not None
        assert [read.post.body, *(one.body for one in read.comments)] == [text for _, text in posts]
        assert [one.id for one in read.comments] == [str(number) for number, _ in posts[1:]]
    board.threads[100].append(board.post(119))
    after = listed()
    assert {id_ for id_ in after if after[id_].token != before[id_].token} == {"100"}
