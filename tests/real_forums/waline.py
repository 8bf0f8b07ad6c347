"""Waline, comments below static pages: Node.js, SQLite, JSON in pages. From npm. The site file is what `trawl sites new` writes
from the address of the blog. It asks no address but ours: no spam service, and its list of login services is a file of the blog.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import urllib.request
from contextlib import closing
from typing import Any, ClassVar

import pytest

from tests.real_forums.environment import bare_environment, free_port, npm_environment
from tests.real_forums.software import Comment, Truth
from tests.real_forums.static_blog import StaticBlog
from tests.support.processes import wait_until

PAGES = 205
START = """const home = require('path').dirname(require.resolve('@waline/vercel/vanilla.js', {paths: ['HOME']}));
const Application = require(require.resolve('thinkjs', {paths: ['HOME']}));
new Application({ROOT_PATH: home, APP_PATH: home + '/src', RUNTIME_PATH: 'FOLDER/runtime', proxy: true, env: 'production'}).run();
think.config('port', PORT);
"""
TABLES = """
CREATE TABLE wl_Comment (id INTEGER PRIMARY KEY AUTOINCREMENT, user_id INT, comment TEXT, ip TEXT,
    insertedAt TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
    link TEXT, mail TEXT, nick TEXT, pid INT, rid INT, sticky BOOLEAN, status TEXT NOT NULL DEFAULT '', "like" INT, ua TEXT,
    url TEXT, createdAt TIMESTAMP DEFAULT CURRENT_TIMESTAMP, updatedAt TIMESTAMP DEFAULT CURRENT_TIMESTAMP);
CREATE TABLE wl_Counter (id INTEGER PRIMARY KEY AUTOINCREMENT, time INT, url TEXT,
    createdAt TIMESTAMP DEFAULT CURRENT_TIMESTAMP, updatedAt TIMESTAMP DEFAULT CURRENT_TIMESTAMP);
CREATE TABLE wl_Users (id INTEGER PRIMARY KEY AUTOINCREMENT, display_name TEXT, email TEXT, password TEXT, type TEXT, label TEXT,
    url TEXT, avatar TEXT, createdAt TIMESTAMP DEFAULT CURRENT_TIMESTAMP, updatedAt TIMESTAMP DEFAULT CURRENT_TIMESTAMP);
"""


class Waline(StaticBlog):
    """A blog of 205 pages, half of them with comments, one with 130."""

    name: ClassVar[str] = "waline"

    def install(self) -> None:
        self._node = shutil.which("node") or pytest.skip("Node.js is not installed")
        self._home = npm_environment("waline", ["@waline/vercel@1.39.3"], scripts=True)

    def start(self) -> None:
        self.serve_pages()
        (self.folder / "www" / "oauth.json").write_text('{"services": []}')
        with self._database() as database:
            database.executescript(TABLES)
        port = free_port()
        self._service = f"http://127.0.0.1:{port}"
        environment = bare_environment(
            SQLITE_PATH=str(self.folder), SQLITE_DB="waline", JWT_TOKEN="a-long-token", AKISMET_KEY="false", IPQPS="0",
            DISABLE_USERAGENT="true", DISABLE_REGION="true", OAUTH_URL=f"{self.base_url}/oauth.json", TZ="UTC",
            SITE_NAME="Garden", SITE_URL=self.base_url,
        )  # fmt: skip
        start = self.folder / "start.js"
        start.write_text(START.replace("HOME", str(self._home)).replace("FOLDER", str(self.folder)).replace("PORT", str(port)))
        self.launch([self._node, start], environment=environment, cwd=self._home)
        wait_until(lambda: b"errno" in self._ask("/api/comment?type=count&url=/"), lambda: f"Waline answers: {self.log()}", 60)
        self.wait_until_it_answers()

    def mark(self, number: int) -> str:
        return (
            '<div id="waline"></div><script type="module">import { init } from "/waline.js"; '
            f'init({{ el: "#waline", serverURL: "{self._service}" }});</script>'
        )

    def _populate(self) -> None:
        self.pages = {number: f"What grows behind the house in week {number}, and how it did." for number in range(1, PAGES + 1)}
        self.write_pages()
        for number in range(1, PAGES + 1, 2):
            first = self._say(number, f"First words on {number}", "ida")
            for more in range(number % 5):
                self._say(number, f"More words, the {more}th, on {number}", f"guest{more}", above=first if more % 2 else None)
        for more in range(130):
            self._say(9, f"One of many words, the {more}th", f"guest{more % 4}")

    def _change(self) -> None:
        self.pages[PAGES + 1] = "A page that is new."
        self.pages[7] = "A page whose text was written again, since it was wrong."
        self.write_pages()
        self._say(PAGES + 1, "On the new page", "ida")
        for number in (3, 4, 200):
            self._say(number, f"New words on {number}", "kurt")
        with self._database() as database, database:
            database.execute("UPDATE wl_Comment SET comment = 'Edited words' WHERE id IN (2, 30)")
            for id_ in (5, 41):  # as Waline deletes: with the answers
                database.execute("DELETE FROM wl_Comment WHERE id = ? OR pid = ? OR rid = ?", (id_, id_, id_))

    def _truth(self) -> Truth:
        with self._database() as database:
            rows = database.execute("SELECT id, url, comment, nick, pid, insertedAt FROM wl_Comment").fetchall()
        comments = {
            str(id_): Comment(topic_id=url.lstrip("/"), text=text, author=nick, parent=str(above) if above else None, at=at[:16])
            for id_, url, text, nick, above, at in rows
        }
        return Truth(topics=self.topics(), comments=comments)

    def truth(self) -> Truth:
        return self._truth()

    def _say(self, number: int, text: str, nick: str, above: int | None = None) -> int:
        body: dict[str, Any] = {"comment": text, "nick": nick, "mail": "", "link": "", "ua": "", "url": f"/{self._path(number)}"}
        body |= {"pid": above, "rid": above, "at": "ida"} if above else {}
        return int(json.loads(self._ask("/api/comment", json.dumps(body).encode()))["data"]["objectId"])

    def _ask(self, path: str, body: bytes | None = None) -> bytes:
        request = urllib.request.Request(f"{self._service}{path}", body, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                found: bytes = answer.read()
                return found
        except OSError as exc:
            return str(exc).encode()

    def _database(self) -> Any:
        return closing(sqlite3.connect(self.folder / "waline.sqlite", timeout=30))
