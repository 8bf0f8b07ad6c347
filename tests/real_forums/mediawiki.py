"""MediaWiki: talk pages, PHP, SQLite. Debian's packages `mediawiki`, `php-cli`, `php-sqlite3`.

A talk page is a topic; its sections' comments end with signatures. The site file is what `trawl sites new` writes.
"""

from __future__ import annotations

import random
import shutil
import sqlite3
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar
from xml.sax.saxutils import escape

import pytest

from tests.real_forums.environment import bare_environment, free_port, run
from tests.real_forums.software import Software

_HOME = Path("/usr/share/mediawiki")
_USERS = ("Ida Berg", "Bob", "Größe", "Carla M.")
_WORDS = ("pump", "filter", "soil", "hum", "aerial", "socket", "roof", "water", "garden", "tile", "brick", "lamp", "wire", "pear")
_ROUTER = """<?php
$path = parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH);
$script = preg_match('#^/(\\\\w+\\\\.php)#', $path, $match) && is_file("HOME/$match[1]") ? $match[1] : 'index.php';
$_SERVER['SCRIPT_NAME'] = $_SERVER['PHP_SELF'] = "/$script";
$_SERVER['SCRIPT_FILENAME'] = "HOME/$script";
chdir('HOME');
require "HOME/$script";
"""


@dataclass
class _Comment:
    author: str
    at: datetime
    texts: list[str]
    depth: int


@dataclass
class _Page:
    title: str
    sections: list[tuple[str, list[_Comment]]] = field(default_factory=list)

    @property
    def comments(self) -> list[_Comment]:
        return [one for _, comments in self.sections for one in comments]

    def answered(self, comment: _Comment) -> _Comment | None:
        """The nearest comment above it in its section that is indented less."""
        before = next(comments[: comments.index(comment)] for _, comments in self.sections if comment in comments)
        return next((one for one in reversed(before) if one.depth < comment.depth), None)

    def wikitext(self) -> str:
        parts = []
        for title, comments in self.sections:
            parts.append(f"== {title} ==")
            for one in comments:
                name, indent = one.author, ":" * one.depth
                signed = f"[[User:{name}|{name}]] ([[User talk:{name}|talk]]) {one.at:%H:%M}, {one.at.day} {one.at:%B %Y} (UTC)"
                lines = f"\n{indent}" if indent else "\n\n"
                parts.append(f"{indent or chr(10)}{lines.join(one.texts)} {signed}")
            parts.append("")
        return "\n".join(parts)


class MediaWiki(Software):
    """A wiki with talk pages of articles, filled and changed by its own import."""

    name: ClassVar[str] = "mediawiki"
    profile: ClassVar[str] = "mediawiki"
    given: ClassVar[str | None] = "/index.php?title=Talk:Garden_0"

    def install(self) -> None:
        self._php = shutil.which("php") or pytest.skip("PHP is not installed: apt-get install php-cli php-sqlite3 mediawiki")
        if not _HOME.is_dir():
            pytest.skip("MediaWiki is not installed: apt-get install mediawiki")
        self._chance = random.Random(11)
        self._at = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
        self._pages: list[_Page] = []

    def start(self) -> None:
        data, port = self.folder / "data", free_port()
        data.mkdir()
        self.base_url = f"http://127.0.0.1:{port}"
        self._environment = bare_environment(HOME=str(self.folder))
        self._maintain(
            "install", "--dbtype", "sqlite", "--dbpath", str(data), "--dbname", "wiki", "--server", self.base_url,
            "--scriptpath", "", "--confpath", str(self.folder), "--pass", "a-long-pass-9", "The wiki", "Admin",
        )  # fmt: skip
        settings = self.folder / "LocalSettings.php"
        settings.write_text(settings.read_text() + "\n$wgJobRunRate = 0;\n$wgMainCacheType = CACHE_NONE;\n")
        self._environment["MW_CONFIG_FILE"] = str(settings)
        (self.folder / "router.php").write_text(_ROUTER.replace("HOME", str(_HOME)))
        environment = {**self._environment, "PHP_CLI_SERVER_WORKERS": "4"}
        self.launch([self._php, "-S", f"127.0.0.1:{port}", str(self.folder / "router.php")], environment=environment)
        self.wait_until_it_answers("/api.php?action=query&meta=siteinfo&format=json")

    def _forums(self) -> list[str]:
        return ["1"]

    def _populate(self) -> None:
        for number in range(210):
            page = _Page(f"Talk:Garden {number}")
            for n in range(self._chance.choice((1, 1, 2, 3))):
                page.sections.append((f"{self._words(3)} {n}", []))
                for _ in range(self._chance.choice((1, 2, 3, 5))):
                    self._comment(page.sections[-1][1])
            self._pages.append(page)
        self._write(self._pages)

    def _change(self) -> None:
        changed = self._pages[:20]
        for page in changed[:10]:
            self._comment(page.sections[-1][1])
        for page in changed[10:14]:
            page.comments[-1].texts[-1] += " Mended."
        for page in changed[14:18]:
            page.sections.append((f"{self._words(3)} new", []))
            self._comment(page.sections[-1][1])
        for page in changed[18:20]:
            comments = page.sections[-1][1]
            self._comment(comments)
            del comments[max(1, len(comments) - 2) : len(comments) - 1]
        gone = self._pages[200:203]
        self._pages = [page for page in self._pages if page not in gone]
        new = _Page("Talk:Garden 900", [(self._words(3), [])])
        self._comment(new.sections[0][1])
        self._pages.append(new)
        self._write([*changed, new])
        names = self.folder / "gone.txt"
        names.write_text("\n".join(page.title for page in gone))
        self._maintain("deleteBatch", str(names))

    def _truth(self) -> dict[str, dict[str, dict[str, Any]]]:
        """What was written, by the ids and for the pages that the wiki's database has now."""
        with sqlite3.connect(f"file:{self.folder / 'data' / 'wiki.sqlite'}?mode=ro", uri=True) as database:
            ids = dict(database.execute("SELECT CAST(page_title AS TEXT), page_id FROM page WHERE page_namespace = 1"))
        topics, comments = {}, {}
        for page in self._pages:
            thread = str(ids.pop(page.title.removeprefix("Talk:").replace(" ", "_")))
            first, *others = page.comments
            topics[thread] = {"forum_id": "1", "title": page.title, **self._told(first), "replies": None}
            names = self._ids(page, thread)
            for one in others:
                above = page.answered(one)
                parent = names[id(above)] if above not in (None, first) else None
                comments[names[id(one)]] = {"topic_id": thread, **self._told(one), "parent": parent}
        assert not ids, f"the wiki has other talk pages: {ids}"
        return {"topics": topics, "comments": comments}

    def _told(self, one: _Comment) -> dict[str, Any]:
        return {"text": "\n\n".join(one.texts), "author": one.author, "at": f"{one.at:%Y-%m-%d %H:%M}"}

    def _ids(self, page: _Page, thread: str) -> dict[int, str]:
        return {id(one): f"{thread}/{one.author.replace(' ', '_')}-{one.at:%Y%m%d%H%M}" for one in page.comments}

    def _comment(self, comments: list[_Comment]) -> None:
        self._at += timedelta(minutes=self._chance.randint(3, 90))
        depth = self._chance.randint(0, min(3, comments[-1].depth + 1)) if comments else 0
        texts = [self._words(self._chance.randint(6, 30)) for _ in range(self._chance.choice((1, 1, 2)))]
        comments.append(_Comment(self._chance.choice(_USERS), self._at, texts, depth))

    def _words(self, count: int) -> str:
        return " ".join(self._chance.choice(_WORDS) for _ in range(count)).capitalize()

    def _write(self, pages: list[_Page]) -> None:
        """Import a newer revision of each page."""
        rows = "".join(
            f"<page><title>{escape(page.title)}</title><ns>1</ns><revision><timestamp>{self._at:%Y-%m-%dT%H:%M:%SZ}</timestamp>"
            f"<contributor><username>{page.comments[-1].author}</username><id>0</id></contributor><model>wikitext</model>"
            f'<format>text/x-wiki</format><text xml:space="preserve">{escape(page.wikitext())}</text></revision></page>'
            for page in pages
        )
        dump = self.folder / "dump.xml"
        dump.write_text(
            f'<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11" xml:lang="en">{rows}</mediawiki>'
        )
        self._maintain("importDump", "--username-prefix", "", str(dump))

    def _maintain(self, script: str, *words: str) -> str:
        return run([self._php, str(_HOME / "maintenance" / f"{script}.php"), *words], environment=self._environment)
