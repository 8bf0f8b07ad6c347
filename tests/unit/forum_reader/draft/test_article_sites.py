"""Sites of articles: read by the profile `articles` from feeds and sitemaps, and recognised by `trawl sites new`."""

from __future__ import annotations

from pathlib import Path

import pytest

from forum_reader.definition import load
from forum_reader.definition.load import site_of
from forum_reader.definition.page_requests import PageRequest
from forum_reader.definition.site import Site
from forum_reader.draft.draft_site import draft_site
from forum_reader.errors import NoForum
from forum_reader.page.response import FetchedPage
from forum_reader.reading.read_page import NO_SIGN, read_comments, read_list

BASE = "https://gazette.example"
RSS = """<rss version="2.0" xmlns:dc="http://purl.org/dc/elements/1.1/"><channel><link>https://gazette.example/</link>
<item><title>Rain</title><link>https://gazette.example/2026/11/rain/</link><dc:creator>Ann</dc:creator>
<pubDate>Tue, 03 Nov 2026 10:00:00 +0000</pubDate><description>wet</description></item>
<item><title>Sun</title><link>https://gazette.example/?p=7</link><pubDate>Mon, 02 Nov 2026 10:00:00 +0000</pubDate></item>
</channel></rss>"""
ATOM = """<feed xmlns="http://www.w3.org/2005/Atom"><link href="https://gazette.example/" rel="self"/>
<entry><title>Rain</title><link rel="edit" href="https://gazette.example/edit"/>
<link rel="alternate" href="https://gazette.example/2026/11/rain/"/>
<author><name>Ann</name></author><published>2026-11-03T10:00:00Z</published><updated>2026-11-04T12:00:00Z</updated></entry></feed>"""
SITEMAP = """<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
<url><loc>https://gazette.example/2026/11/rain</loc><lastmod>2026-11-04T12:00:00Z</lastmod></url></urlset>"""
ARTICLE = """<html><head><title>Rain - Gazette</title><meta property="og:title" content="Rain">
<meta property="article:published_time" content="2026-11-03T10:00:00Z"><meta property="article:modified_time"
content="2026-11-04T12:00:00Z"><meta name="author" content="Ann">{feeds}</head><body><nav>Home Sport</nav>
<article><h1>Rain</h1><div class="entry-content"><p>It rained all day, and into the night, on hills and on the town.</p>
<script>track()</script></div></article><footer>All rights</footer></body></html>"""
LINK = '<link rel="alternate" type="application/{}+xml" href="{}">'
FEEDS = LINK.format("rss", "/feed/") + LINK.format("atom", "/atom/")
COMMENTS = LINK.format("rss", "/comments/feed/")
PAGES = {
    "/": ARTICLE.format(feeds=COMMENTS + FEEDS),
    "/feed/": RSS,
    "/atom/": ATOM,
    "/comments/feed/": RSS,
    "/sitemap.xml": SITEMAP,
    "/2026/11/rain/": ARTICLE.format(feeds=""),
    "/2026/11/rain": ARTICLE.format(feeds=""),
    "/?p=7": ARTICLE.format(feeds=""),
}


def page(path: str) -> FetchedPage:
    text = PAGES.get(path)
    kind = "application/xml" if text and not text.startswith("<html") else "text/html"
    return FetchedPage(
        BASE + path, (text or "").encode(), status=200 if text else 404, headers=[("Content-Type", f"{kind}; charset=utf-8")]
    )


def fetch(request: PageRequest) -> FetchedPage:
    return page(request.url.removeprefix(BASE))


@pytest.fixture(scope="module")
def site() -> Site:
    table = {"profile": "articles", "base_url": BASE, "forums": ["feed/", "atom/", "sitemap.xml"]}
    return site_of(load.read(Path("gazette.toml"), table))


def test_an_article_has_one_id_on_feeds_and_sitemaps(site: Site) -> None:
    rss, atom, sitemap = (read_list(site, page(f"/{one}"), one).threads for one in site.forums)
    assert [one.id for one in rss] == ["2026/11/rain", "?p=7"]
    assert [one.id for one in (*atom, *sitemap)] == ["2026/11/rain"] * 2
    assert (rss[0].title, rss[0].author, rss[0].url) == ("Rain", "Ann", f"{BASE}/2026/11/rain/")
    assert atom[0].url == f"{BASE}/2026/11/rain/"


def test_lists_with_dates_show_the_same_change_and_those_without_show_none(site: Site) -> None:
    rss, atom, sitemap = (read_list(site, page(f"/{one}"), one).threads[0].token for one in site.forums)
    assert atom == sitemap == "None@2026-11-04T12:00:00+00:00"
    assert rss == NO_SIGN


def test_an_article_is_a_post_without_what_stands_around_it(site: Site) -> None:
    read = read_comments(site, page("/2026/11/rain/"), "2026/11/rain", url=f"{BASE}/2026/11/rain/")
    post = read.post
    assert post is not None
    assert (post.id, post.title, post.author) == ("2026/11/rain", "Rain", "Ann")
    assert post.body == "It rained all day, and into the night, on hills and on the town."
    assert (str(post.created_at), str(post.edited_at)) == ("2026-11-03 10:00:00+00:00", "2026-11-04 12:00:00+00:00")
    assert (read.comments, read.next) == ((), None)


@pytest.mark.parametrize(("path", "forum"), [("/", "atom/"), ("/feed/", "feed/"), ("/sitemap.xml", "sitemap.xml")])
def test_a_site_that_is_no_forum_is_drafted_by_its_feed(path: str, forum: str) -> None:
    text = draft_site(BASE + path, fetch=fetch)
    assert 'profile = "articles"' in text
    assert f'forums = [\n    "{forum}",\n]' in text


def test_a_site_without_feeds_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PAGES, "/", ARTICLE.format(feeds=COMMENTS))
    monkeypatch.setitem(PAGES, "/comments/feed/", "<rss><channel></channel></rss>")
    with pytest.raises(NoForum, match="no forum was found"):
        draft_site(f"{BASE}/", fetch=fetch)
