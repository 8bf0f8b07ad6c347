"""Kareha, a board of the 2ch kind: a Perl script that writes a page for each thread, and a front page that shows the newest posts
of the newest threads. The front page links to the newest 50 posts of each; the backlog lists all threads.

Fetched once: a copy of the public repository `FelixWolf/Kareha`, put into the cache's folder `kareha` by hand.
"""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import urllib.parse
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tests.real_forums.environment import bare_environment, cache, free_port
from tests.real_forums.software import Software

_NAMES = ("", "", "", "Ida", "Bob Marsh")
_WORDS = ("pump", "filter", "soil", "hum", "aerial", "socket", "roof", "water", "garden", "tile", "brick", "lamp", "wire", "pear")
_CLOCK = "package Clock; BEGIN { *CORE::GLOBAL::time = sub { $ENV{NOW} } } 1;"
_PASSWORD = "a-long-pass-9"


@dataclass
class _Post:
    name: str
    texts: list[str]
    at: datetime


@dataclass
class _Thread:
    title: str
    posts: dict[int, _Post] = field(default_factory=dict)


class Kareha(Software):
    """One board. The site file is what `trawl sites new` writes."""

    name: ClassVar[str] = "kareha"
    profile: ClassVar[str] = "generic"
    given: ClassVar[str | None] = "/board/"

    def install(self) -> None:
        self._perl = shutil.which("perl") or pytest.skip("Perl is not installed")
        self._source = cache("kareha")
        if not (self._source / "kareha.pl").exists():
            pytest.skip(f"{self._source} has no kareha.pl: put a copy of FelixWolf/Kareha there")
        self._chance = random.Random(14)
        self._at = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
        self._threads: dict[str, _Thread] = {}

    def start(self) -> None:
        self._board = self.folder / "www" / "board"
        shutil.copytree(self._source, self._board)
        shutil.copytree(self._board / "mode_message", self._board, dirs_exist_ok=True)
        for name in ("res", "src", "thumb", "css", "img"):
            (self._board / name).mkdir(exist_ok=True)
        config = self._board / "config.pl"
        config.write_text(
            f"use constant ADMIN_PASS => '{_PASSWORD}';\nuse constant SECRET => '{'s' * 40}';\n"
            "use constant SPAM_TRAP => 0;\nuse constant CONVERT_COMMAND => '';\nuse constant TITLE => 'The board';\n"
            f"{config.read_text()}"
        )
        (self._board / "Clock.pm").write_text(_CLOCK)
        port = free_port()
        self.base_url = f"http://127.0.0.1:{port}"
        server = Path(__file__).parent / "worlds" / "cgi_server.py"
        self.launch([sys.executable, server, str(port), self._board.parent], environment=bare_environment(TZ="UTC"))
        self._send({})
        self.wait_until_it_answers("/board/")

    def _forums(self) -> list[str]:
        return ["all"]

    def _populate(self) -> None:
        for _ in range(205):
            thread = self._post(None)
            for _ in range(self._chance.choice((0, 0, 0, 1, 2, 5))):
                self._post(thread)
        for _ in range(60):
            self._post(thread)

    def _change(self) -> None:
        names = list(self._threads)
        for thread in self._chance.sample(names[10:], 12):
            self._post(thread)
        for _ in range(3):
            self._post(None)
        for name in [name for name in names if len(self._threads[name].posts) > 3][:3]:
            self._send({"task": "delete", "delete": f"{name},3", "password": "pass"})
            del self._threads[name].posts[3]
            self._post(name)
        for name in names[:3]:
            self._send({"task": "deletethread", "thread": name, "admin": self._crypted()})
            del self._threads[name]

    def _truth(self) -> dict[str, dict[str, dict[str, Any]]]:
        """What was written, for the threads that the board has now."""
        kept = {path.stem for path in (self._board / "res").glob("*.html")}
        assert kept == self._threads.keys()
        topics, comments = {}, {}
        for name, thread in self._threads.items():
            told = {
                number: {
                    "text": "\n\n".join(post.texts), "author": post.name or "Anonymous", "at": f"{post.at:%Y-%m-%d %H:%M}"
                }
                for number, post in thread.posts.items()
            }  # fmt: skip
            topics[name] = {"forum_id": "all", "title": thread.title, **told.pop(1), "replies": None}
            comments |= {f"{name}/{number}": {"topic_id": name, **one, "parent": None} for number, one in told.items()}
        return {"topics": topics, "comments": comments}

    def _post(self, name: str | None) -> str:
        self._at += timedelta(minutes=self._chance.randint(3, 90))
        texts = [self._words(self._chance.randint(8, 40)) for _ in range(self._chance.choice((1, 1, 2)))]
        post = _Post(self._chance.choice(_NAMES), texts, self._at)
        title = self._words(4)
        self._send(
            {
                "task": "post", "thread": name or "", "field_a": post.name, "field_b": "", "title": "" if name else title,
                "comment": "\r\n\r\n".join(texts), "markup": "waka", "password": "pass",
            }
        )  # fmt: skip
        if name is None:
            name = str(int(post.at.timestamp()))
            self._threads[name] = _Thread(title)
        posts = self._threads[name].posts
        posts[max(posts, default=0) + 1] = post
        return name

    def _crypted(self) -> str:
        """The form of the administrator's password that the board's pages send."""
        script = 'require "./config.pl"; require "./wakautils.pl"; print crypt_password(ADMIN_PASS);'
        return self._run(["-e", script], {}, check=False).split("\n")[0] or _PASSWORD

    def _send(self, form: dict[str, str]) -> None:
        self._run(["-MClock", "kareha.pl"], form)

    def _run(self, script: list[str], form: dict[str, str], *, check: bool = True) -> str:
        body = urllib.parse.urlencode(form).encode()
        environment = bare_environment(
            CONTENT_LENGTH=str(len(body)), NOW=str(int(self._at.timestamp())), TZ="UTC", SCRIPT_NAME="/board/kareha.pl",
            REMOTE_ADDR="127.0.0.1", SERVER_NAME="127.0.0.1", CONTENT_TYPE="application/x-www-form-urlencoded",
            **({"REQUEST_METHOD": "POST"} if form else {}),
        )  # fmt: skip
        done = subprocess.run(
            [self._perl, "-I.", *script], input=body, env=environment, cwd=self._board, check=check, capture_output=True
        )
        answer = done.stdout.decode(errors="replace")
        assert "Error" not in answer[:2000] or not check, answer[:3000]
        return answer

    def _words(self, count: int) -> str:
        return " ".join(self._chance.choice(_WORDS) for _ in range(count)).capitalize()
