"""Sources that are not forums: what a feed, a sitemap and a list in HTML show of a site's articles, and of their edits.

A site of 60 articles is watched with the profile `articles`, from one source or from several: an RSS feed and an Atom feed of all
articles, a sitemap with dates, a list in HTML. It is scanned, scanned again, then ten articles are edited and five are new, and
it is scanned a third time; at last each article is checked. Rows count pages of articles that the site was asked for.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any, cast

import pytest

from benchmarks.support.report import Report
from tests.real_forums.software import Software
from tests.real_forums.watching import Watch
from tests.support.redis_server import RedisServer
from tests.support.watched_site import Page, WatchedSite

SOURCES: dict[str, tuple[str, ...]] = {
    "RSS, Atom and sitemap": ("feed.rss", "feed.atom", "sitemap.xml"),
    "HTML list": ("list.html",),
    "Atom": ("feed.atom",),
}
IN_HTML = """
[pages.list]
format = "html"
rows = "li"
[pages.list.fields]
id = { select = "a::attr(href)", regex = "/(.+)$" }
url = "a"
"""
BEGIN = datetime(2026, 11, 1, 9, 0, tzinfo=UTC)
XML = {"Content-Type": "application/xml"}


@dataclass
class Gazette:
    """The articles of a site, by number: when each was changed, and how often."""

    site: WatchedSite
    lists: tuple[str, ...]
    name: str = "gazette"
    edits: dict[int, int] = field(default_factory=dict)

    def forums(self) -> list[str]:
        """Return the sources, as the site file names them."""
        return list(self.lists)

    def site_file(self) -> str:
        """Return the site file."""
        more = IN_HTML if self.lists == SOURCES["HTML list"] else ""
        named = ", ".join(f'"{one}"' for one in self.lists)
        polite = "[politeness]\nrate = 0\nconcurrency = 8\n"
        return f'profile = "articles"\nbase_url = "{self.site.url}"\nforums = [{named}]\n{polite}{more}'

    def text(self, number: int) -> str:
        """Return an article's text."""
        return f"<p>The text of article {number}, at some length and with a second sentence, version {self.edits[number]}.</p>"

    def answer(self, path: str) -> Page:
        """Answer with a source, or an article."""
        makers = {"/feed.rss": self._rss, "/feed.atom": self._atom, "/sitemap.xml": self._sitemap, "/list.html": self._html}
        if path in makers:
            return makers[path]()
        number = int(path.rpartition("-")[2]) if path.startswith("/article-") else -1
        if number not in self.edits:
            return Page("nothing", 404)
        by = f"<b class='author'>Ann</b><time datetime='{self._at(number).isoformat()}'>then</time>"
        return Page(f"<html><body><article><h1>Article {number}</h1>{by}{self.text(number)}</article></body></html>")

    def _at(self, number: int, edits: int = 0) -> datetime:
        return BEGIN + timedelta(hours=number, minutes=30 * edits)

    def _newest(self) -> Sequence[int]:
        return sorted(self.edits, reverse=True)

    def _rss(self) -> Page:
        rows = (
            f"<item><title>Article {n}</title><link>{self.site.url}/article-{n}</link>"
            f"<pubDate>{format_datetime(self._at(n))}</pubDate><description>{escaped(self.text(n))}</description></item>"
            for n in self._newest()
        )
        return Page(f"<rss version='2.0'><channel>{''.join(rows)}</channel></rss>", headers=XML)

    def _atom(self) -> Page:
        rows = (
            f"<entry><title>Article {n}</title><link rel='alternate' href='{self.site.url}/article-{n}'/>"
            f"<published>{self._at(n).isoformat()}</published><updated>{self._at(n, self.edits[n]).isoformat()}</updated></entry>"
            for n in self._newest()
        )
        return Page(f"<feed xmlns='http://www.w3.org/2005/Atom'>{''.join(rows)}</feed>", headers=XML)

    def _sitemap(self) -> Page:
        rows = (
            f"<url><loc>{self.site.url}/article-{n}</loc><lastmod>{self._at(n, self.edits[n]).isoformat()}</lastmod></url>"
            for n in self._newest()
        )
        return Page(f"<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'>{''.join(rows)}</urlset>", headers=XML)

    def _html(self) -> Page:
        return Page("".join(f"<li><a href='/article-{n}'>Article {n}</a></li>" for n in self._newest()))


def escaped(markup: str) -> str:
    """Return markup as text in XML."""
    return markup.replace("&", "&amp;").replace("<", "&lt;")


def run(*, small: bool) -> Report:
    """Watch the site from each source. The small form has 12 articles, and all feeds together."""
    report = Report(title="Articles", method=" ".join((__doc__ or "").split("\n\n", 1)[1].split()))
    articles = 12 if small else 60
    rows = [[name, *watched(lists, articles)] for name, lists in SOURCES.items() if not small or len(lists) > 1]
    head = ["source", "articles", "first scan", "second scan", "after 10 edits and 5 new", "edits seen by the scan", "by a check"]
    report.table(head, rows)
    return report


def watched(lists: tuple[str, ...], articles: int) -> list[object]:
    """Watch one site; return the columns of a row."""
    with (
        tempfile.TemporaryDirectory(prefix="trawl-research-") as folder,
        pytest.MonkeyPatch.context() as environment,
        WatchedSite() as site,
        RedisServer() as server,
        server.client() as client,
    ):
        gazette = Gazette(site, lists)
        site.answer = gazette.answer
        gazette.edits = dict.fromkeys(range(articles), 0)
        watch = Watch(cast("Software", gazette), Path(folder), server.url, client)
        for name, value in watch.environment.items():
            environment.setenv(name, value)

        def asked() -> int:
            return sum(path.startswith("/article-") for path in site.paths())

        def current() -> int:
            bodies = [one.text for one in watch.stored().seen.topics.values()]
            return sum("version 1" in body for body in bodies)

        counts: list[Any] = []
        for step in range(3):
            before = asked()
            if step == 2:
                gazette.edits |= dict.fromkeys(range(10), 1)
                gazette.edits |= dict.fromkeys(range(articles, articles + 5), 0)
            watch.scan(deep=step == 0)
            counts.append(asked() - before)
        seen = current()
        watch.check()
        return [len(watch.stored().seen.topics), *counts, f"{seen} of 10", f"{current()} of 10"]
