"""What `trawl sites check --live` says of the pages that it fetched."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from scrapy.http import HtmlResponse, TextResponse

from forum_reader.definition.page_requests import PageRequest
from forums.sites import load_site
from forums.sites.check import Trial
from forums.sites.http.fetch import Visitor

FILE = """base_url = "http://yard.example"
forums = ["3"]
[pages.list]
url = "/board?id={forum}&page={page}"
rows = "li"
fields = { id = { select = "a::attr(href)", regex = "t=(\\\\d+)" }, title = "a", token = "i" }
[pages.comments]
url = "/talk?t={thread}&page={page}"
rows = "div.p"
next = "a.next"
post = { title = "h1" }
fields = { id = "./@id", body = "p" }
"""
PAGES = {
    "/board?id=3&page=1": "<ul><li><a href='/talk?t=7'>Pumps</a> <i>2</i></li></ul>",
    "/board?id=3&page=2": "<ul></ul>",
    "/talk?t=7&page=2": "<p>{}</p><h1>Pumps</h1><div class=p id=p3><p>Three</p></div>",
    "/talk?t=7&page=1": "<p>{}</p><h1>Pumps</h1><div class=p id=p1><p>One</p></div><div class=p id=p2><p>Two</p></div>",
}
BOARD = "<a class=next href='/board?id=3&page=2'>Next</a>"


class Pages(Visitor):
    """Pages without a server; `trail` stands above a thread."""

    def __init__(self, trail: str) -> None:
        super().__init__()
        self._trail = trail

    async def get(self, url: str | PageRequest) -> TextResponse:
        address = url if isinstance(url, str) else url.url
        body = PAGES[address.removeprefix("http://yard.example")].format(self._trail)
        return HtmlResponse(address, body=f"<title>Yard</title>{body}".encode(), encoding="utf-8")


@pytest.mark.parametrize(("trail", "is_told"), [(BOARD, True), (BOARD.replace("board?id=3", "talk?t=7"), False), ("", False)])
def test_a_next_page_that_is_one_of_the_board_is_named(
    trail: str, is_told: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAWL_SITES_DIR", str(tmp_path))
    (tmp_path / "yard.toml").write_text(FILE)
    tried = asyncio.run(Trial(load_site("yard"), Pages(trail)).run(None, None))
    comments = next(one for one in tried if one.kind == "comments")
    assert ("one of the board" in (comments.problem or "")) is is_told
    assert is_told or comments.problem is None
