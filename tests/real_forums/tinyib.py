"""TinyIB, an imageboard: PHP, SQLite, static HTML pages. A copy of the public repository `tslocum/TinyIB`, put into the cache's
folder `tinyib` by hand. A board's pages show each thread's first post and its newest ones.
"""

from __future__ import annotations

import random
import re
import shutil
import sqlite3
import urllib.parse
import urllib.request
from typing import Any, ClassVar

import pytest

from tests.real_forums.environment import bare_environment, cache, free_port
from tests.real_forums.software import Software

_WORDS = ("pump", "filter", "soil", "hum", "aerial", "socket", "roof", "water", "garden", "tile", "brick", "lamp", "wire", "pear")
_SETTINGS = {"TINYIB_DELAY": "0", "TINYIB_MAXTHREADS": "0", "TINYIB_DBMODE": "'sqlite3'", "TINYIB_TRIPSEED": "'a seed'",
             "TINYIB_ADMINPASS": "'a-long-pass-9'", "TINYIB_NOFILEOK": "true"}  # fmt: skip


class TinyIB(Software):
    """One board without pictures. The site file is what `trawl sites new` writes."""

    name: ClassVar[str] = "tinyib"
    profile: ClassVar[str] = "generic"
    given: ClassVar[str | None] = "/"

    def install(self) -> None:
        self._php = shutil.which("php") or pytest.skip("PHP is not installed: apt-get install php-cli php-sqlite3")
        self._source = cache("tinyib")
        if not (self._source / "imgboard.php").exists():
            pytest.skip(f"{self._source} has no imgboard.php: put a copy of tslocum/TinyIB there")
        self._chance = random.Random(13)

    def start(self) -> None:
        self._board = self.folder / "board"
        shutil.copytree(self._source, self._board)
        script = self._board / "imgboard.php"
        script.write_text(script.read_text().replace("'$2y$12$'", "'$2y$04$'"))  # three hashes a post, of a second each
        settings = (self._board / "settings.default.php").read_text()
        for name, value in _SETTINGS.items():
            settings = re.sub(rf"define\('{name}', .*?\);", f"define('{name}', {value});", settings)
        (self._board / "settings.php").write_text(settings)
        port = free_port()
        self.base_url = f"http://127.0.0.1:{port}"
        environment = bare_environment(PHP_CLI_SERVER_WORKERS="4")
        command = [self._php, "-d", "error_reporting=0", "-S", f"127.0.0.1:{port}", "-t", str(self._board)]
        self.launch(command, environment=environment)
        self.wait_until_it_answers("/imgboard.php")

    def _forums(self) -> list[str]:
        return ["all"]

    def _populate(self) -> None:
        for _ in range(205):
            thread = self._post()
            for _ in range(self._chance.choice((0, 0, 1, 2, 5))):
                self._post(thread)

    def _change(self) -> None:
        threads = [row[0] for row in self._rows("SELECT id FROM b_posts WHERE parent = 0 ORDER BY id")]
        for thread in self._chance.sample(threads, 12):
            self._post(thread)
        for _ in range(3):
            self._post()
        for (reply,) in self._rows("SELECT id FROM b_posts WHERE parent > 0 ORDER BY id LIMIT 3"):
            self._send({"delete": str(reply), "password": "pass"}, "?delete")
        for thread in threads[50:53]:
            self._send({"delete": str(thread), "password": "pass"}, "?delete")

    def _truth(self) -> dict[str, dict[str, dict[str, Any]]]:
        """What the board's database has now."""
        rows = self._rows("SELECT id, parent, name, message, strftime('%Y-%m-%d %H:%M', timestamp, 'unixepoch') FROM b_posts")
        topics, comments = {}, {}
        for number, parent, name, message, at in rows:
            told = {"text": re.sub("<[^>]*>", " ", message), "author": name or "Anonymous", "at": at}
            if parent:
                comments[str(number)] = {"topic_id": str(parent), **told, "parent": None}
            else:
                topics[str(number)] = {"forum_id": "all", "title": told["text"], **told, "replies": None}
        return {"topics": topics, "comments": comments}

    def _rows(self, query: str) -> list[Any]:
        with sqlite3.connect(f"file:{self._board / '.tinyib.db'}?mode=ro", uri=True) as database:
            return database.execute(query).fetchall()

    def _post(self, thread: int = 0) -> int:
        lines = [self._words() for _ in range(self._chance.choice((1, 1, 2)))]
        name = self._chance.choice(("", "", "Ida", "Bob Marsh"))
        self._send({"name": name, "message": "\n".join(lines), "parent": str(thread), "password": "pass"})
        return int(self._rows("SELECT max(id) FROM b_posts")[0][0])

    def _send(self, fields: dict[str, str], query: str = "") -> None:
        form = {"email": "", "subject": "", **fields}
        data = urllib.parse.urlencode(form).encode()
        with urllib.request.urlopen(f"{self.base_url}/imgboard.php{query}", data, timeout=30) as answer:
            answer.read()

    def _words(self) -> str:
        return " ".join(self._chance.choice(_WORDS) for _ in range(self._chance.randint(6, 30))).capitalize()
