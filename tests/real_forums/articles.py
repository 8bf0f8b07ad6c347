"""News software and blogs, read as articles: by feeds and sitemaps, with the profile `articles`, without their comments."""

from __future__ import annotations

import random
import sys
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

from tests.real_forums.environment import free_port, pip_environment, run
from tests.real_forums.mezzanine import Mezzanine
from tests.real_forums.software import Software
from tests.real_forums.wordpress import WordPress

WORDS = ("crawl", "river", "stone", "kettle", "lantern", "marble", "violin", "ünïcode", "中文")
SETTINGS = """
AUTHOR = "Staff"
SITENAME = "The Gazette"
SITEURL = "{address}"
PATH = "content"
TIMEZONE = "UTC"
DEFAULT_LANG = "en"
FEED_ALL_ATOM = "feeds/all.atom.xml"
FEED_ALL_RSS = "feeds/all.rss.xml"
DEFAULT_PAGINATION = 10
FEED_MAX_ITEMS = 1000
"""
ARTICLE = (
    "Title: {title}\nDate: {at:%Y-%m-%d %H:%M}\nModified: {changed:%Y-%m-%d %H:%M}\nAuthor: {author}\nSlug: {slug}\n\n{text}\n"
)
MEZZANINE = """
[pages.list]
rows = "//entry | //url[re:test(loc, '/blog/(?!category|author)[^/]+/')]"
[pages.comments]
url = "/{thread:path}/"
[pages.comments.fields]
body = "//h6[contains(@class, 'post-meta')][1]/following-sibling::p[not(starts-with(normalize-space(), '('))]"
author = ".post-meta a"
created_at = false
"""


class WordPressArticles(WordPress):
    """Its sitemap has all posts and no dates; its feed the newest 50, with their texts."""

    name: ClassVar[str] = "wordpress-articles"
    given: ClassVar[str | None] = None
    profile: ClassVar[str] = "articles"

    def forums(self) -> list[str]:
        return ["wp-sitemap-posts-post-1.xml", "feed/"]


class MezzanineArticles(Mezzanine):
    """Its sitemap has all posts, and pages of other kinds."""

    name: ClassVar[str] = "mezzanine"
    given: ClassVar[str | None] = None
    profile: ClassVar[str] = "articles"

    def forums(self) -> list[str]:
        return ["sitemap.xml"]

    def site_file(self) -> str:
        """The part of the sitemap that has articles; its addresses are of a site on port 80. A text has no element around it."""
        return f"{super().site_file()}{MEZZANINE}"


class Pelican(Software):
    """A static site; what is published are the files of a folder, which are its database."""

    name: ClassVar[str] = "pelican"
    given: ClassVar[str | None] = "/"
    profile: ClassVar[str] = "articles"

    def install(self) -> None:
        self._python = pip_environment(self.name, ("pelican==4.12.0", "Markdown==3.11.3"))
        self._articles: dict[str, dict[str, Any]] = {}
        self._dice, self._clock = random.Random(5), datetime(2026, 1, 3, 10, 0, tzinfo=UTC)

    def start(self) -> None:
        (self.folder / "content").mkdir()
        (self.folder / "out").mkdir()
        port = free_port()
        self.base_url = f"http://127.0.0.1:{port}"
        (self.folder / "pelicanconf.py").write_text(SETTINGS.format(address=self.base_url))
        self.launch([sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1", "-d", self.folder / "out"])
        self.wait_until_it_answers()

    def _forums(self) -> list[str]:
        return ["feeds/all.atom.xml"]

    def _write(self, slug: str) -> None:
        (self.folder / "content" / f"{slug}.md").write_text(ARTICLE.format(slug=slug, **self._articles[slug]))

    def _add(self, slug: str) -> None:
        self._clock += timedelta(minutes=self._dice.randint(7, 900))
        words = " ".join(self._dice.choices(WORDS, k=self._dice.randint(20, 90)))
        title = f"Of {' and '.join(self._dice.sample(WORDS, 2))}, {slug}"
        author = self._dice.choice(("Ann B.", "王小明", "Chloé"))
        self._articles[slug] = {"title": title, "at": self._clock, "changed": self._clock, "author": author, "text": words}
        self._write(slug)

    def _build(self) -> None:
        run([self._python, "-m", "pelican", "content", "-s", "pelicanconf.py", "-o", "out", "-q", "-d"], cwd=self.folder)

    def _populate(self) -> None:
        for number in range(205):
            self._add(f"a{number}")
        self._build()

    def _change(self) -> None:
        for number in range(6):
            self._add(f"later{number}")
        for number in range(40, 50):
            article = self._articles[f"a{number}"]
            self._clock += timedelta(minutes=5)
            article |= {"text": f"{article['text']} Edited since.", "changed": self._clock}
            self._write(f"a{number}")
        for number in range(60, 63):
            del self._articles[f"a{number}"]
            (self.folder / "content" / f"a{number}.md").unlink()
        self._build()

    def _truth(self) -> dict[str, dict[str, dict[str, Any]]]:
        topics = {
            f"{slug}.html": {"forum_id": "", "title": one["title"], "text": one["text"], "author": one["author"], "replies": None}
            | {"at": f"{one['at']:%Y-%m-%d %H:%M}"}
            for slug, one in self._articles.items()
        }
        return {"topics": topics, "comments": {}}
