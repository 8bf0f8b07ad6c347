"""The feed that a board of known software links, as the page of its newest messages."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from scrapy.http import HtmlResponse, TextResponse, XmlResponse

from forum_reader.definition import load
from forum_reader.draft.draft_file import Draft, text_of
from forum_reader.draft.paging_links import recent_of_profile
from forum_reader.reading.page_records import ListedForum
from forum_reader.reading.read_page import read_recent
from forums.sites import load_site
from forums.sites.http.fetch import Visitor

HOST = "https://forum.example"


class Feeds(Visitor):
    """A site that has but one feed."""

    def __init__(self, items: str) -> None:
        super().__init__()
        self._items = items

    async def get(self, url: object) -> TextResponse:
        """Whatever is asked for."""
        body = f'<rss version="2.0" xmlns:slash="x"><channel>{self._items}</channel></rss>'
        return XmlResponse(str(url), body=body.encode(), encoding="utf-8")


@pytest.mark.parametrize(
    ("profile", "below", "feed", "link", "more", "told"),
    [
        ("phpbb2", "/board", "/board/rss.php", "/board/viewtopic.php?t={n}&amp;p=9{n}#9{n}", "", "created_at"),
        ("phpbb2", "", "/rss.php?f=1", "/viewtopic.php?f=1&amp;t={n}&amp;p=9{n}#9{n}", "", "created_at"),
        (
            "xenforo",
            "",
            "/forums/-/index.rss",
            "/threads/how-to-prune.{n}/",
            "<slash:comments>{n}</slash:comments>",
            "reply_count",
        ),
        ("invision", "/community", "/rss/1-new.xml/", "/community/topic/{n}-how-to-2024/", "", "created_at"),
        ("woltlab", "", "/index.php?board-feed/", "/thread/{n}-how-to/", "<slash:comments>{n}</slash:comments>", "reply_count"),
        ("mybb", "", "/syndication.php", "/showthread.php?tid={n}", "", "created_at"),
        ("vanilla", "", "/discussions/feed.rss", "/discussion/{n}/how-to", "", "created_at"),
        ("discuz", "", "/forum.php?mod=rss", "/forum.php?mod=viewthread&amp;tid={n}", "", "created_at"),
    ],
)
def test_a_feed_tells_which_threads_have_changed(
    profile: str, below: str, feed: str, link: str, more: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAWL_SITES_DIR", str(tmp_path))
    items = "".join(
        f"<item><link>{HOST}{link.format(n=n)}</link><pubDate>Sun, 22 Nov 2026 10:0{n}:00 GMT</pubDate>{more.format(n=n)}</item>"
        for n in (7, 8, 9)
    )
    head = f'<link rel="alternate" type="application/rss+xml" href="{feed}">'
    index = HtmlResponse(f"{HOST}{below}/", body=f"<html><head>{head}</head></html>".encode(), encoding="utf-8")
    visitor = Feeds(items)
    recent = asyncio.run(recent_of_profile(visitor.get, load.profile_table(profile), HOST + below, index))
    assert recent is not None
    draft = Draft(
        name="x", profile=profile, software="x", base_url=HOST + below, forums=(ListedForum(id="1", name="n"),), recent=recent
    )
    (tmp_path / "x.toml").write_text(text_of(draft))
    site = load_site("x")
    assert site.url("recent") == HOST + feed
    messages = read_recent(site, asyncio.run(visitor.get(HOST + feed))).messages
    assert [one.thread for one in messages] == ["7", "8", "9"]
    assert all(getattr(one, told) is not None for one in messages)


@pytest.mark.parametrize("profile", ["discourse", "smf", "phpbb", "hyperkitty", "vbulletin5"])
def test_software_that_has_such_a_page_or_needs_more_than_an_id(profile: str) -> None:
    head = '<link rel="alternate" type="application/rss+xml" href="/feed">'
    index = HtmlResponse(f"{HOST}/", body=f"<html><head>{head}</head></html>".encode(), encoding="utf-8")
    items = "".join(f"<item><link>{HOST}/t/{n}</link></item>" for n in (7, 8, 9))
    assert asyncio.run(recent_of_profile(Feeds(items).get, load.profile_table(profile), HOST, index)) is None


def test_a_feed_that_leads_to_other_pages_than_threads_is_none_of_them() -> None:
    """Its numbers would be taken for those of threads."""
    head = '<link rel="alternate" type="application/rss+xml" href="/forum.php?mod=rss">'
    index = HtmlResponse(f"{HOST}/", body=f"<html><head>{head}</head></html>".encode(), encoding="utf-8")
    items = "".join(f"<item><link>{HOST}/forum.php?mod=post&amp;tid={n}</link></item>" for n in (7, 8, 9))
    assert asyncio.run(recent_of_profile(Feeds(items).get, load.profile_table("discuz"), HOST, index)) is None
