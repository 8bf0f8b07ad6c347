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
from workers.sites.trial import Trial

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


class Small(Visitor):
    """A forum whose addresses have titles in them, whose front page shows threads first, and whose posts have a number within the
    thread as their id.
    """

    THREADS = ("first", "2-is-more", "%E8%8A%B1")

    async def get(self, url: str) -> TextResponse:
        path = url.removeprefix(BASE)
        html = self._thread(int(path.split("/")[2])) if path.startswith("/topic/") else self._list(path)
        return HtmlResponse(url, body=f"<html><body>{html}</body></html>".encode(), encoding="utf-8")

    def _list(self, path: str) -> str:
        rows = [
            f'<div class="box row"><a class="t" href="/topic/{n}/{title}/">{title}</a><b class="n">{n}</b></div>'
            for n, title in enumerate(self.THREADS, 7)
        ]
        forums = (
            '<div class="box"><a href="/category/1/one-2/">One</a></div><div class="box"><a href="/category/2/two/">Two</a></div>'
        )
        numbers = '<p><a href="?page=2">2</a> <a href="?page=2"><i class="arrow-right"></i></a></p>' if path != "/" else ""
        return f'<div class="list">{"".join(rows)}</div>{forums}{numbers}'

    def _thread(self, thread: int) -> str:
        posts = [
            f'<div class="post" id="c{n}" data-floor="{n}" data-pk="{10 * thread + n}"><p class="text">words of {n}</p></div>'
            for n in (1, 2)
        ]
        return f'<h1>A title</h1><div class="posts">{"".join(posts)}</div>'


def test_titles_in_addresses_threads_on_the_front_page_and_posts_that_are_numbered_within_a_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAWL_SITES_DIR", str(tmp_path))
    visitor = Small()
    front = asyncio.run(visitor.get(f"{BASE}/"))
    guessed = asyncio.run(look_around(visitor, front))
    draft = Draft(
        name="x", profile=None, software="unknown", base_url=BASE, forums=guessed_forums(front, guessed), guessed=guessed
    )
    (tmp_path / "x.toml").write_text(text := text_of(draft))
    assert "# What is in the first row:\n#   a.t   first\n#   b.n   7\n" in text
    site = load_site("x")
    assert site.forums == ("1/one-2", "2/two")
    *_, listed, post, comments = asyncio.run(Trial(site, visitor).run(None, None))
    assert (listed.url, listed.rows, listed.next) == (f"{BASE}/category/1/one-2/?page=1", 3, f"{BASE}/category/1/one-2/?page=2")
    assert [page.problem for page in (listed, post, comments)] == [None] * 3
    assert listed.hint == "changed threads cannot be told from others: look at `reply_count` and `last_activity`, or set `token`"
    assert {field.name: field.example for field in comments.fields if field.required} == {"id": "72", "body": "words of 2"}

    wrong = (
        text.replace("'./@data-pk'", "'./@id'")
        .replace("next = '", "next = '.no ")
        .replace('# reply_count = ".replies"', "reply_count = '.n'")
    )
    (tmp_path / "x.toml").write_text(wrong)
    *_, listed, _, comments, other = asyncio.run(Trial(load_site("x"), visitor).run(None, None))
    assert listed.hint == "no next page was found, but there is a link to /category/1/one-2/?page=2: look at `next`"
    assert comments.hint == "the list says 9 replies, this page has 1, and there is no next page: look at `next`"
    assert other.problem == "thread 8 has a comment c2, too: an id must be of one comment of the site: look at `id`"


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
