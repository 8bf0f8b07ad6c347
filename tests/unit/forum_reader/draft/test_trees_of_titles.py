"""Site files of boards that show one message a page, and a thread as a tree of titles."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from forum_reader import FetchedPage, draft_site
from forum_reader.definition import load
from forum_reader.definition.load import site_of
from forum_reader.definition.page_requests import PageRequest
from forum_reader.definition.site import Site
from forum_reader.reading.page_records import ListedThread
from forum_reader.reading.read_page import read_comments, read_list
from tests.support.message_trees import Message, classed, followups, in_divs, in_tables, thread

BASE = "http://board.example"
HTML = (("Content-Type", "text/html; charset=utf-8"), ("Date", "Sat, 28 Nov 2026 10:00:00 GMT"))
SIZES = (1, 4, 7, 2, 5, 9, 1, 4, 7, 2, 5, 9)


class Board:
    """Twelve threads; `page` shows a message, `address` is that of its page, `row` that of a message in a list within a list."""

    def __init__(self, page: Callable[[Message], str], address: str, *, table: bool = False, whole: bool = False) -> None:
        self.address = address
        self.threads = [thread(size, 101 + 20 * n) for n, size in enumerate(SIZES)]
        self.messages = {str(one.number): one for messages in self.threads for one in messages}
        self.pages = {address.format(one.number, one.first.number): page(one) for one in self.messages.values()}
        row = self.flat if table else self.nested_whole if whole else self.nested
        rows = "".join(row(messages[0]) for messages in reversed(self.threads))
        around = "<table class=list><tr><th>Subject<th>Written By<th>Posted</tr>{}</table>" if table else "<ul>{}</ul>"
        title = "<title>The board</title><body><h1>The board</h1>"
        self.pages["/board/"] = f"<html>{title}<a href=faq.html>FAQ</a><hr>{around.format(rows)}</body></html>"
        if whole:
            self.pages |= {f"/index.php?mode=thread&id={one[0].number}": in_divs(one[0]) for one in self.threads}

    def link(self, one: Message) -> str:
        kind = "reply" if one.answered else "thread"
        return f'<a class={kind} href="{self.address.format(one.number, one.first.number)}">{one.title}</a>'

    def nested(self, one: Message) -> str:
        inner = "".join(map(self.nested, one.answers))
        return f"<li>{self.link(one)} - <b>{one.author}</b> <i>{one.at:%H:%M:%S %m/%d/%y}</i><ul>{inner}</ul>"

    def nested_whole(self, one: Message) -> str:
        return f"<ul class=tree>{self.row_of_tree(one)}</ul>"

    def row_of_tree(self, one: Message) -> str:
        whole = f'<a href="/index.php?mode=thread&amp;id={one.number}"><img src=c.png title="Open whole thread" alt="[*]"></a>'
        inner = f"<ul>{''.join(map(self.row_of_tree, one.answers))}</ul>" if one.answers else ""
        name = f"<strong class=user>{one.author}</strong>"
        return f"<li>{self.link(one)} - {name}, <span>{one.at:%Y-%m-%d, %H:%M} {'' if one.answered else whole}</span>{inner}</li>"

    def flat(self, first: Message) -> str:
        return "".join(
            f'<tr><td style="padding-left:{15 * one.depth}px">{self.link(one)}</td><td>{one.author}</td>'
            f"<td>{one.at:%m/%d/%Y %I:%M%p}</td></tr>"
            for one in first.in_tree()
        )

    def fetch(self, page: PageRequest) -> FetchedPage:
        text = self.pages.get(page.url.removeprefix(BASE))
        return FetchedPage(page.url, (text or "").encode(), status=200 if text else 404, headers=HTML)

    def site(self) -> Site:
        return site_of(load.read(Path("mine.toml"), tomllib.loads(draft_site(f"{BASE}/board/", fetch=self.fetch, name="mine"))))

    def listed(self, site: Site) -> list[ListedThread]:
        response = self.fetch(PageRequest(url=site.list_url(site.forums[0])))
        return list(read_list(site, response, site.forums[0]).threads)


@pytest.mark.parametrize(
    "board",
    [
        pytest.param(Board(followups, "/board/{}.html"), id="answers below a message"),
        pytest.param(Board(in_tables, "/board/read.php?1,{1},{0}", table=True), id="thread as a table"),
        pytest.param(Board(classed, "/index.php?id={}"), id="thread as a tree"),
    ],
)
def test_each_message_is_read_from_its_page(board: Board) -> None:
    site = board.site()
    listed = board.listed(site)
    assert len(listed) == len(board.messages)
    for one in listed:
        response = board.fetch(PageRequest(url=site.url("comments", forum="all", thread=one.id, url=one.url)))
        page = read_comments(site, response, one.id)
        true = board.messages[one.id.rpartition(",")[2]]
        assert page.post is not None
        assert (one.title, page.post.author, page.post.body, page.post.created_at) == (
            true.title,
            true.author,
            true.text,
            true.at,
        )
        assert (page.post.title, page.comments) == (true.title, ())


@pytest.mark.thorough
def test_pages_of_whole_threads_are_read_where_the_list_links_them() -> None:
    board = Board(classed, "/index.php?id={}", whole=True)
    site = board.site()
    before = {one.id: one for one in board.listed(site)}
    assert {id_: one.title for id_, one in before.items()} == {str(one[0].number): one[0].title for one in board.threads}
    for first, *_ in board.threads:
        page = read_comments(
            site, board.fetch(PageRequest(url=f"{BASE}/index.php?mode=thread&id={first.number}")), str(first.number)
        )
        messages = list(first.in_tree())
        assert page.post is not None
        posts = [page.post, *page.comments]
        assert [(post.author, post.body, post.created_at) for post in posts] == [(m.author, m.text, m.at) for m in messages]
        answered = [m.answered for m in messages[1:]]
        parents = [str(m.number) if m and m.answered else None for m in answered]
        assert [(one.id, one.parent_id) for one in page.comments] == list(
            zip([str(m.number) for m in messages[1:]], parents, strict=True)
        )
    board.pages["/board/"] = board.pages["/board/"].replace("</strong>", "</strong> and one more", 1)
    after = {one.id: one for one in board.listed(site)}
    assert {id_ for id_ in after if after[id_].token != before[id_].token} == {str(board.threads[-1][0].number)}
