"""Fossil's forum: C, HTML pages, an SQLite database of its own. Debian's package `fossil`.

Its list links to a thread's newest post; an edit makes another artifact, under which the thread is listed from then on.
"""

from __future__ import annotations

import http.cookiejar
import random
import re
import shutil
import sqlite3
import subprocess
import urllib.parse
import urllib.request
from typing import Any, ClassVar

import pytest

from tests.real_forums.environment import bare_environment, free_port
from tests.real_forums.software import Software

USERS = ("alice", "bob", "carol")
_CARD = re.compile(r"^([A-Z]) (.*)$", re.MULTILINE)


class Poster:
    """A user who is logged in."""

    def __init__(self, base_url: str, user: str) -> None:
        self._base_url = base_url
        self._opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))
        self._post("/login", {"u": user, "p": f"pw{user}", "in": "Login"})

    def start(self, title: str, text: str) -> str:
        """Start a thread; returns the post's hash."""
        return self._say("/forume1", title=title, content=text)

    def reply(self, post: str, text: str) -> str:
        return self._say("/forume2", fpid=post, reply="1", content=text)

    def edit(self, post: str, text: str, **title: str) -> str:
        return self._say("/forume2", fpid=post, edit="1", content=text, **title)

    def delete(self, post: str) -> str:
        return self._say("/forume2", fpid=post, nullout="1", content="")

    def _say(self, path: str, **fields: str) -> str:
        return self._post(path, {"mimetype": "text/x-markdown", "submit": "Submit", **fields}).rpartition("/")[2]

    def _post(self, path: str, fields: dict[str, str]) -> str:
        request = urllib.request.Request(
            self._base_url + path, urllib.parse.urlencode(fields).encode(), {"Referer": self._base_url + path}
        )
        with self._opener.open(request, timeout=30) as answer:
            return str(answer.geturl())


class Fossil(Software):
    """A repository with a forum. The site file is what `trawl sites new` writes."""

    name: ClassVar[str] = "fossil"
    profile: ClassVar[str] = "fossil"
    given: ClassVar[str | None] = "/forum"

    def install(self) -> None:
        self._program = shutil.which("fossil") or pytest.skip("fossil is not installed: apt-get install fossil")
        self._repository = self.folder / "forum.fossil"
        self._environment = bare_environment(HOME=str(self.folder), USER="root", PATH="/usr/bin:/bin")

    def start(self) -> None:
        self._fossil("new", str(self._repository), "--admin-user", "root", here=False)
        for user in USERS:
            self._fossil("user", "new", user, "", f"pw{user}")
            self._fossil("user", "capabilities", user, "ghijkmnorz23456")
        # A guest may read the forum, and sees links: without `h` no robot can follow one.
        self._fossil("sql", "UPDATE user SET cap = cap || 'h2' WHERE login = 'nobody'")
        port = free_port()
        self.base_url = f"http://127.0.0.1:{port}"
        self.launch(
            [self._program, "server", str(self._repository), "--port", str(port), "--localhost"], environment=self._environment
        )
        self.wait_until_it_answers("/forum")
        self._posters = {user: Poster(self.base_url, user) for user in USERS}
        self._threads: list[list[str]] = []

    def _forums(self) -> list[str]:
        return ["forum"]

    def _populate(self) -> None:
        chance = random.Random(5)
        for number in range(205):
            posts = [self._one(chance).start(f"Topic {number}", f"What topic {number} is about, at some length.")]
            for answer in range(chance.choice((0, 0, 1, 2, 3, 6))):
                posts.append(self._one(chance).reply(chance.choice(posts), f"Answer {answer} in topic {number}, and why."))
            self._threads.append(posts)
        for posts in [posts for posts in self._threads if len(posts) > 1][:12]:
            posts[-1] = self._posters["alice"].edit(posts[-1], f"Edited by alice, {len(posts)} posts.")
        self._posters["bob"].delete(next(posts for posts in self._threads[30:] if len(posts) > 2).pop())

    def _change(self) -> None:
        one = self._posters["carol"]
        for number in range(5):
            one.start(f"Later topic {number}", f"Said later, about {number}.")
        for number, posts in enumerate(self._threads[40:60]):
            one.reply(posts[-1], f"A late answer {number}.")
        longer = [posts for posts in self._threads[60:] if len(posts) > 2]
        for posts in longer[:6]:
            posts[1] = one.edit(posts[1], "Carol has said it in other words.")
        for posts in longer[6:10]:
            one.delete(posts.pop())
        one.edit(self._threads[100][0], "An opening post that was edited.", title="Another title")

    def _truth(self) -> dict[str, dict[str, dict[str, Any]]]:
        with sqlite3.connect(f"file:{self._repository}?mode=ro", uri=True) as database:
            rows = database.execute(
                "SELECT fpid, froot, fprev, firt, uuid FROM forumpost JOIN blob ON rid = fpid ORDER BY fmtime"
            ).fetchall()
        uuids = {fpid: uuid for fpid, *_, uuid in rows}
        heads: dict[int, int] = {}  # of each version the first one
        newest: dict[int, int] = {}
        for fpid, _, previous, _, _ in rows:
            heads[fpid] = heads[previous] if previous else fpid
            newest[heads[fpid]] = fpid
        topics, comments = {}, {}
        for fpid, root, previous, answered, _ in rows:
            if previous:
                continue
            first, last = self._cards(uuids[fpid]), self._cards(uuids[newest[fpid]])
            if not last["W"]:
                continue  # deleted
            at = (
                None if first["D"] != last["D"] else first["D"][:16].replace("T", " ")
            )  # of an edited post only the edit's is shown
            shown = {"text": last["W"], "author": first["U"], "at": at}
            if fpid == root:
                title = last["H"].replace("\\s", " ")
                topics[uuids[fpid][:10]] = {**shown, "forum_id": "forum", "title": title, "replies": None}
            else:
                parent = None if heads[answered] == root else uuids[heads[answered]][:10]
                comments[uuids[fpid][:10]] = {**shown, "topic_id": uuids[root][:10], "parent": parent}
        return {"topics": topics, "comments": comments}

    def _cards(self, uuid: str) -> dict[str, str]:
        """An artifact's cards; `W` is the text that follows its card."""
        artifact = self._fossil("artifact", uuid)
        cards = dict(_CARD.findall(artifact.partition("\nW ")[0]))
        size, _, rest = artifact.partition("\nW ")[2].partition("\n")
        return {**cards, "W": rest.encode()[: int(size)].decode()}

    def _one(self, chance: random.Random) -> Poster:
        return self._posters[chance.choice(USERS)]

    def _fossil(self, *words: str, here: bool = True) -> str:
        command = [self._program, *words, *(["-R", str(self._repository)] if here else [])]
        done = subprocess.run(
            command, env=self._environment, cwd=self.folder, capture_output=True, text=True, timeout=60, check=True
        )
        return done.stdout
