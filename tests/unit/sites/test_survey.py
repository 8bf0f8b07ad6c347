"""An unknown forum is looked at, and the keys of a site file are guessed from its pages."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from scrapy.http import HtmlResponse, TextResponse

from demo.forum.bodies import Bodies
from demo.forum.html_pages import HtmlPages
from demo.forum.world import Size, World
from workers.sites import load_site
from workers.sites.draft import Draft, text_of
from workers.sites.fetch import Visitor
from workers.sites.look_around import guessed_forums, look_around
from workers.sites.reading import read_comments, read_index, read_list
from workers.sites.survey import links_of

BASE = "http://forum.example"


class Stored(Visitor):
    """Pages of the demo's forum as people see them, without a server."""

    def __init__(self, pages: HtmlPages) -> None:
        super().__init__()
        self._pages = pages

    async def get(self, url: str) -> TextResponse:
        return HtmlResponse(url, body=self.page(url.removeprefix(BASE)), encoding="utf-8")

    def page(self, path: str) -> bytes:
        address, _, number = path.partition("?page=")
        _, kind, key = address.rsplit("/", 2) if address != "/" else ("", "", "")
        show = {"f": self._pages.forum, "t": self._pages.thread}
        return show[kind](key, number or "1") if kind else self._pages.index()


def test_an_unknown_forum_can_be_crawled_with_what_was_guessed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAWL_SITES_DIR", str(tmp_path))
    world = World(1, Size(forums=2, threads=45, comments=10))
    visitor = Stored(HtmlPages(world, Bodies()))
    front = asyncio.run(visitor.get(f"{BASE}/"))
    guessed = asyncio.run(look_around(visitor, front))
    forums = guessed_forums(front, guessed)
    assert [(forum.id, forum.name) for forum in forums] == [(forum.id, forum.name) for forum in world.forums.values()]
    draft = Draft(name="x", profile=None, software="unknown", base_url=BASE, forums=forums, guessed=guessed)
    (tmp_path / "x.toml").write_text(text_of(draft))
    site = load_site("x")
    assert [forum.id for forum in read_index(site, front).forums] == ["f1", "f2"]
    rows, url, number = [], site.list_url("f1"), 1
    while url:
        page = read_list(site, asyncio.run(visitor.get(url)), "f1", number)
        rows += page.threads
        url, number = page.next, number + 1
    assert [(row.id, row.title) for row in rows] == [
        (thread.post.id, thread.post.title) for thread in world.forums["f1"].ordered()
    ]
    thread = max(world.forums["f1"].activity.values(), key=lambda thread: thread.reply_count)
    first = read_comments(site, asyncio.run(visitor.get(site.url("comments", thread=thread.post.id))), thread.post.id)
    assert first.post is not None
    assert first.post.body == thread.post.body
    assert {comment.body for comment in first.comments} == {comment.body for comment in thread.comments[:20]}


def test_links_with_two_numbers_and_a_title_are_known_by_their_last_part() -> None:
    html = "".join(
        f'<div class="row"><a href="/forum/one-2/topic/a-title-{n}/">t</a><a href="/member/{n}/">ann</a></div>' for n in (7, 8)
    )
    (links,) = links_of(HtmlResponse(f"{BASE}/forum/one-2/", body=f"<div>{html}</div>".encode()))
    assert (links.before, links.ids, links.mark, links.rows) == (
        "/forum/one-2/topic/",
        ("a-title-7", "a-title-8"),
        "/topic/",
        "div.row",
    )
    assert links.id_regex() == r"/topic/(?:[^/?&#]*[-.])?(\d+)"
