"""isso, comments below static pages: Python, SQLite, JSON. From PyPI. The site file is what `trawl sites new` writes from the
address of the blog.
"""

from __future__ import annotations

import json
import sqlite3
import urllib.request
from contextlib import closing
from datetime import UTC, datetime
from typing import Any, ClassVar

from tests.real_forums.environment import bare_environment, cache, free_port, pip_environment
from tests.real_forums.software import Comment, Truth
from tests.real_forums.static_blog import StaticBlog

CONFIG = """
[general]
dbpath = {folder}/comments.db
host = {host}
latest-enabled = true
[server]
listen = {service}
[guard]
enabled = false
"""
PAGES = 205


class Isso(StaticBlog):
    """A blog of 205 pages, half of them with comments."""

    name: ClassVar[str] = "isso"

    def install(self) -> None:
        pip_environment("isso", ["isso==0.14.0"], complete=False)

    def start(self) -> None:
        self.serve_pages()
        self._service = f"http://127.0.0.1:{free_port()}"
        config = self.folder / "isso.cfg"
        config.write_text(CONFIG.format(folder=self.folder, host=self.base_url, service=self._service))
        self.launch([cache("isso") / "bin" / "isso", "-c", config, "run"], environment=bare_environment())
        pages, self.base_url = self.base_url, self._service
        self.wait_until_it_answers("/?uri=/")
        self.base_url = pages
        self.wait_until_it_answers()

    def mark(self, number: int) -> str:
        script = f'<script data-isso="{self._service}/" src="{self._service}/js/embed.min.js"></script>'
        return f'{script}<section id="isso-thread"></section>'

    def _populate(self) -> None:
        self.pages = {
            number: f"What grows behind the house in week {number}, and how it did last year." for number in range(1, PAGES + 1)
        }
        self.write_pages()
        for number in range(1, PAGES + 1, 2):
            first = self._say(number, f"First words on {number}", "ida")
            for more in range(number % 5):
                self._say(number, f"More words, the {more}th, on {number}", f"guest{more}", parent=first if more % 2 else None)

    def _change(self) -> None:
        self.pages[PAGES + 1] = "A page that is new."
        self.pages[7] = "A page whose text was written again, since it was wrong."
        self.write_pages()
        self._say(PAGES + 1, "On the new page", "ida")
        for number in (3, 4, 200):
            self._say(number, f"New words on {number}", "kurt")
        with self._database() as database, database:
            database.execute("UPDATE comments SET text = 'Edited words', modified = created + 60 WHERE id IN (2, 30)")
            for id_ in (5, 41):  # as isso deletes: a comment that has answers keeps its place
                has_answers = database.execute("SELECT 1 FROM comments WHERE parent = ?", (id_,)).fetchone()
                empty = "UPDATE comments SET text = '', author = NULL, mode = 4 WHERE id = ?"
                database.execute(empty if has_answers else "DELETE FROM comments WHERE id = ?", (id_,))

    def _truth(self) -> Truth:
        with self._database() as database:
            rows = database.execute(
                "SELECT comments.id, uri, text, author, parent, created FROM comments"
                " JOIN threads ON tid = threads.id WHERE mode = 1"
            ).fetchall()
        comments = {
            str(id_): Comment(
                topic_id=uri.lstrip("/"),
                text=text,
                author=author,
                parent=None if parent is None else str(parent),
                at=datetime.fromtimestamp(created, UTC).strftime("%Y-%m-%d %H:%M"),
            )
            for id_, uri, text, author, parent, created in rows
        }
        return Truth(topics=self.topics(), comments=comments)

    def truth(self) -> Truth:
        return self._truth()

    def _say(self, number: int, text: str, author: str, parent: int | None = None) -> int:
        body: dict[str, Any] = {"text": text, "author": author, "parent": parent, "title": f"Post {number}"}
        request = urllib.request.Request(
            f"{self._service}/new?uri=/{self._path(number)}",
            json.dumps(body).encode(),
            {"Content-Type": "application/json", "Origin": self.base_url},
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            return int(json.load(answer)["id"])

    def _database(self) -> Any:
        return closing(sqlite3.connect(self.folder / "comments.db", timeout=30))
