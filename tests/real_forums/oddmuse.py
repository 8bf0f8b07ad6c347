"""Oddmuse, a wiki with comment pages: one Perl script. A comment ends with its author's name behind a dash and a date; what has
changed is on the page of recent changes.

A copy of `wiki.pl` and `modules/admin.pl` of the public repository `kensanata/oddmuse`, put into the cache's folder `oddmuse` by
hand.
"""

from __future__ import annotations

import random
import re
import shutil
import subprocess
import sys
import urllib.parse
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tests.real_forums.environment import bare_environment, cache, free_port
from tests.real_forums.software import Software

_NAMES = ("Ida Berg", "Bob", "Größe", "Carla M.")
_WORDS = ("pump", "filter", "soil", "hum", "aerial", "socket", "roof", "water", "garden", "tile", "brick", "lamp", "wire", "pear")
_CLOCK = "package Clock; BEGIN { *CORE::GLOBAL::time = sub () { $ENV{NOW} } } 1;"
_CONFIG = "$CommentsPrefix = 'Comments_on_'; $SurgeProtection = 0; $AdminPass = 'a-long-pass-9'; $SiteName = 'The wiki'; 1;\n"
_BEGUN = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
_SERVED = _BEGUN + timedelta(days=29)


@dataclass
class _Comment:
    author: str
    at: datetime
    texts: list[str]


class Oddmuse(Software):
    """A wiki with comments on its pages. The site file is what `trawl sites new` writes."""

    name: ClassVar[str] = "oddmuse"
    profile: ClassVar[str] = "generic"
    given: ClassVar[str | None] = "/wiki.pl?action=rc"

    def install(self) -> None:
        self._perl = shutil.which("perl") or pytest.skip("Perl is not installed")
        self._source = cache("oddmuse")
        if not all((self._source / name).exists() for name in ("wiki.pl", "admin.pl")):
            pytest.skip(f"{self._source} has no wiki.pl and admin.pl: put those of kensanata/oddmuse there")
        self._chance = random.Random(16)
        self._at = _BEGUN
        self._pages: dict[str, list[_Comment]] = {}

    def start(self) -> None:
        self._www, self._data = self.folder / "www", self.folder / "data"
        self._www.mkdir()
        (self._data / "modules").mkdir(parents=True)
        shutil.copy(self._source / "wiki.pl", self._www)
        shutil.copy(self._source / "admin.pl", self._data / "modules")
        (self._data / "config").write_text(_CONFIG)
        (self._www / "Clock.pm").write_text(_CLOCK)
        port = free_port()
        self.base_url = f"http://127.0.0.1:{port}"
        server = Path(__file__).parent / "worlds" / "cgi_server.py"
        self._environment = bare_environment(TZ="UTC", WikiDataDir="../data", PERL5LIB=str(self._www), PERL5OPT="-MClock")
        environment = self._environment | {"NOW": str(int(_SERVED.timestamp()))}
        self.launch([sys.executable, server, str(port), self._www], environment=environment)
        self.wait_until_it_answers("/wiki.pl")

    def _forums(self) -> list[str]:
        return ["all"]

    def _populate(self) -> None:
        for title in self._titles(205):
            for _ in range(self._chance.choice((1, 1, 2, 3, 5))):
                self._comment(title)

    def _change(self) -> None:
        titles = list(self._pages)
        for title in self._chance.sample(titles[20:], 12):
            self._comment(title)
        for title in self._titles(3):
            self._comment(title)
        for title in [title for title in titles[:20] if len(self._pages[title]) > 2][:3]:
            del self._pages[title][1]
            self._save(title)
        for title in titles[10:13]:
            self._pages[title][-1].texts[-1] += " Mended."
            self._save(title)
        for title in titles[50:53]:
            self._send({"action": "delete", "id": _id(title), "pwd": "a-long-pass-9"})
            del self._pages[title]

    def _truth(self) -> dict[str, dict[str, dict[str, Any]]]:
        """What was written, for the pages that the wiki has now."""
        kept = {path.stem for path in (self._data / "page").rglob("*.pg")}
        assert kept == {_id(title) for title in self._pages}
        topics, comments = {}, {}
        for title, written in self._pages.items():
            thread = _id(title)
            first, *others = written
            topics[thread] = {"forum_id": "all", "title": f"Comments on {title}", **_told(first), "replies": None}
            for one in others:
                name = f"{thread}/{one.author.replace(' ', '_')}-{one.at:%Y%m%d%H%M}"
                comments[name] = {"topic_id": thread, **_told(one), "parent": None}
        return {"topics": topics, "comments": comments}

    def _titles(self, count: int) -> list[str]:
        names = {f"{one} {two}".capitalize() for one in _WORDS for two in (*_WORDS, "pump filter", "tile lamp")}
        return self._chance.sample(sorted(names - self._pages.keys()), count)

    def _comment(self, title: str) -> None:
        self._at += timedelta(minutes=self._chance.randint(3, 90))
        texts = [self._words(self._chance.randint(6, 30)) for _ in range(self._chance.choice((1, 1, 2)))]
        one = _Comment(self._chance.choice(_NAMES), self._at, texts)
        self._pages.setdefault(title, []).append(one)
        self._send({"title": _id(title), "aftertext": "\n\n".join(texts), "username": one.author})

    def _save(self, title: str) -> None:
        """Edit the page: its text as the wiki writes it, from the comments."""
        self._at += timedelta(minutes=self._chance.randint(3, 90))
        parts = ("\n\n".join(one.texts) + f"\n\n-- {one.author} {one.at:%Y-%m-%d %H:%M} UTC\n\n" for one in self._pages[title])
        self._send({"title": _id(title), "text": "\n----\n\n".join(parts), "username": "Ida Berg", "summary": "mended"})

    def _send(self, form: dict[str, str]) -> None:
        body = urllib.parse.urlencode(form).encode()
        environment = self._environment | {
            "NOW": str(int(self._at.timestamp())), "REQUEST_METHOD": "POST", "CONTENT_LENGTH": str(len(body)),
            "CONTENT_TYPE": "application/x-www-form-urlencoded", "SCRIPT_NAME": "/wiki.pl", "SERVER_NAME": "127.0.0.1",
            "REMOTE_ADDR": "127.0.0.1",
        }  # fmt: skip
        done = subprocess.run(
            [self._perl, "wiki.pl"], input=body, env=environment, cwd=self._www, check=True, capture_output=True
        )
        answer = done.stdout.decode(errors="replace")
        assert not re.search(r"^Status: [45]", answer, re.MULTILINE), answer[:2000] + done.stderr.decode()

    def _words(self, count: int) -> str:
        return " ".join(self._chance.choice(_WORDS) for _ in range(count)).capitalize()


def _id(title: str) -> str:
    return f"Comments_on_{title.replace(' ', '_')}"


def _told(one: _Comment) -> dict[str, Any]:
    return {"text": "\n\n".join(one.texts), "author": one.author, "at": f"{one.at:%Y-%m-%d %H:%M}"}
