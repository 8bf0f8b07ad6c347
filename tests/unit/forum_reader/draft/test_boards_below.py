"""Forums of known software that only the pages of other forums list."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from scrapy.http import HtmlResponse, TextResponse

from forum_reader.draft.boards import MOST_BOARDS, boards_below
from forum_reader.reading.read_page import read_index
from forums.sites import load_site
from forums.sites.http.fetch import FetchFailed

BASE = "http://board.example"
BELOW = {"1": ("2", "3"), "3": ("4",), "4": ("5",)}  # phpBB's index shows two levels


def row(forum: str, inner: str = "") -> str:
    return (
        f'<dl class="row-item"><dt><div class="list-inner"><a href="./viewforum.php?f={forum}" class="forumtitle">'
        f"Board {forum}</a>{inner}</div></dt></dl>"
    )


def page(url: str) -> TextResponse:
    forum = url.partition("f=")[2].partition("&")[0]
    if forum == "2":
        raise FetchFailed("answers with status 403")
    inner = "".join(f'<a href="./viewforum.php?f={one}" class="subforum">Board {one}</a>' for one in BELOW["1"])
    rows = "".join(map(row, BELOW.get(forum, ()))) if forum else row("1", inner)
    threads = (
        '<ul class="topiclist topics"><li><a href="./viewtopic.php?t=9" class="topictitle">Hum</a></li></ul>' if forum else ""
    )
    return HtmlResponse(url, body=f"<html><body id='phpbb'>{rows}{threads}</body></html>".encode(), encoding="utf-8")


def test_forums_below_those_of_the_index_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAWL_SITES_DIR", str(tmp_path))
    (tmp_path / "b.toml").write_text(f'profile = "phpbb"\nbase_url = "{BASE}"\nforums = ["1"]\n')
    site, asked = load_site("b"), []

    async def get(url: str) -> TextResponse:
        asked.append(url)
        return page(url)

    listed = {one.id: one for one in read_index(site, page(site.url("index"))).forums}
    assert list(listed) == ["1", "2", "3"]
    found = asyncio.run(boards_below(site, listed, get))
    assert [(one.id, one.name, one.parent_id) for one in found.values()] == [
        ("1", "Board 1", None), ("2", "Board 2", "1"), ("3", "Board 3", "1"), ("4", "Board 4", "3"), ("5", "Board 5", "4"),
    ]  # fmt: skip
    assert len(asked) == 5 <= MOST_BOARDS, "each page once, also of the forum that cannot be read"
