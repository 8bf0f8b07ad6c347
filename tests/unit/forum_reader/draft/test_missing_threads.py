"""A board that answers with status 200 for a thread that does not exist: how it shows that is learned from one such answer."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from forum_reader import FetchedPage, draft_site
from forum_reader.definition import load
from forum_reader.definition.load import site_of
from forum_reader.definition.page_requests import PageRequest
from forum_reader.definition.site import Site
from forum_reader.errors import PageGone
from forum_reader.reading.read_page import read_comments
from tests.support.unknown_forums import Tables, UnknownForum, document

BASE = "http://forum.example"
HTML = (("Content-Type", "text/html; charset=utf-8"),)


class Board:
    """A forum that answers with `missing` where there is nothing, or leads to `elsewhere`."""

    def __init__(self, missing: str, *, elsewhere: str = "", status: int = 200) -> None:
        self.forum: UnknownForum = Tables()
        self.missing, self.elsewhere, self.status = missing, elsewhere, status
        self.asked: list[str] = []

    def fetch(self, page: PageRequest) -> FetchedPage:
        path = page.url.removeprefix(BASE)
        if (text := self.forum.page(path)) is not None:
            return FetchedPage(page.url, text.encode())
        self.asked.append(path)
        if self.elsewhere:
            return FetchedPage(BASE + self.elsewhere, (self.forum.page(self.elsewhere) or self.missing).encode())
        return FetchedPage(
            page.url, self.missing.encode(), status=self.status, headers=(("Content-Type", "text/html; charset=utf-8"),)
        )

    def drafted(self) -> tuple[Site, str]:
        text = draft_site(f"{BASE}/", fetch=self.fetch, name="mine")
        return site_of(load.read(Path("mine.toml"), tomllib.loads(text))), text


def is_gone(site: Site, page: FetchedPage) -> bool:
    try:
        read_comments(site, page, "7")
    except PageGone:
        return True
    return False


@pytest.mark.parametrize(
    "body",
    [
        "<h1>Error</h1><p>Thread 99999 does not exist.</p><p><a href='/'>Return to the board</a></p>",
        '<div class=box>Das Thema "99999" wurde nicht gefunden</div>',
        "<b>Ce sujet n'existe pas</b> ou plus",
        "<td>抱歉，指定的主题不存在</td>",
        "<script>alert('존재하지 않는 글입니다.'); history.back();</script>",
    ],
)
def test_a_thread_that_does_not_exist_is_recognised(body: str) -> None:
    board = Board(document("The board", body))
    site, text = board.drafted()
    assert len(board.asked) == 1
    assert "Not found: pages.comments.gone" not in text
    assert is_gone(site, FetchedPage(f"{BASE}/x", document("Another", body.replace("99999", "1234")).encode(), encoding="utf-8"))
    for thread in board.forum.threads[:5]:
        page = board.fetch(PageRequest(url=site.url("comments", forum="garden", thread=thread.id)))
        assert not is_gone(site, page)
        quoting = page.text.replace(thread.posts[0].text, body)
        assert not is_gone(site, FetchedPage(page.url, quoting.encode(), encoding="utf-8"))


@pytest.mark.parametrize(
    "board",
    [
        Board(document("Moved", "<p>Thread not found. We have moved.</p>"), elsewhere="/moved"),
        Board(document("The board", "<p>Welcome to the board. Please choose a forum.</p>")),
        Board("", elsewhere=f"/show.cgi?thread={Tables().threads[3].id}"),
        Board(document("Log in", "<p>Not found? Log in.</p><form><input type=password></form>")),
    ],
    ids=["leads to no list", "no sign", "leads to a thread", "a login page"],
)
def test_what_does_not_mean_that_a_thread_is_missing_is_no_sign(board: Board) -> None:
    site, _ = board.drafted()
    assert site.pages.comments.gone is None
    assert len(board.asked) == 1


@pytest.mark.parametrize("place", ["/", "/show.cgi?board=garden"], ids=["the index", "a list"])
def test_a_thread_that_does_not_exist_leads_to_a_list(place: str) -> None:
    board = Board("", elsewhere=place)
    site, _ = board.drafted()
    assert (site.pages.comments.gone, site.pages.comments.gone_at) == (None, place)
    assert is_gone(site, board.fetch(PageRequest(url=f"{BASE}{place}")))
    thread = board.fetch(PageRequest(url=site.url("comments", forum="garden", thread=board.forum.threads[0].id)))
    assert not is_gone(site, thread)


def test_a_board_that_answers_with_404_needs_no_sign() -> None:
    board = Board(document("Error", "<p>This thread does not exist.</p>"), status=404)
    site, text = board.drafted()
    assert site.pages.comments.gone is None
    assert "pages.comments.gone" not in text
