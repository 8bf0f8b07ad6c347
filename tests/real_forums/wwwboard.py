"""WWWBoard, a board of 1995: a Perl script that writes a page for each message, with the answers as a tree of titles below it.

Fetched once: `wwwboard.pl` of a public repository, put into the cache's folder `wwwboard` by hand. Nothing can be edited; what an
administrator removes is gone.
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
from typing import Any, ClassVar

import pytest

from tests.real_forums.environment import bare_environment, cache, free_port
from tests.real_forums.software import Software

_NAMES = ("Ida Berg", "Bob", "carla", "Dov K.")
_WORDS = ("pump", "filter", "soil", "hum", "aerial", "socket", "roof", "water", "garden", "tile", "brick", "lamp", "wire", "pear")
_RUN = 'BEGIN { *CORE::GLOBAL::time = sub { $ENV{NOW} } } do "./wwwboard.pl"; die $@ if $@;'
_SETTINGS = """$basedir = "FOLDER"; $baseurl = "/board"; $cgi_url = "/cgi-bin/wwwboard.pl"; $mesgdir = "messages"; $ext = "html";
$datafile = "data.txt"; $mesgfile = "index.html"; $title = "The board"; 1;
"""
_INDEX = """<html><head><title>The board</title></head><body><h1>The board</h1>
Below is the discussion.<p>[ <a href="#post">Post Message</a> ] [ <a href="faq.html">FAQ</a> ]<hr>
<ul>
<!--begin-->
</ul>
<a name="post"><h2>Post A Message!</h2></a><form method=POST action="/cgi-bin/wwwboard.pl"><input type=text name=name>
<textarea name=body></textarea></form></body></html>
"""


@dataclass(frozen=True)
class _Message:
    number: int
    subject: str
    name: str
    texts: tuple[str, ...]
    at: datetime
    above: tuple[int, ...]
    """The messages that it is below, the first one first."""


class WWWBoard(Software):
    """One board. The site file is what `trawl sites new` writes."""

    name: ClassVar[str] = "wwwboard"
    profile: ClassVar[str] = "generic"
    given: ClassVar[str | None] = "/board/index.html"

    def install(self) -> None:
        self._perl = shutil.which("perl") or pytest.skip("Perl is not installed")
        self._script = cache("wwwboard") / "wwwboard.pl"
        if not self._script.exists():
            pytest.skip(f"{self._script} is missing: put WWWBoard 2.0's wwwboard.pl there")
        self._chance = random.Random(12)
        self._at = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
        self._messages: dict[int, _Message] = {}
        self._last = 0

    def start(self) -> None:
        self._board = self.folder / "www" / "board"
        (self._board / "messages").mkdir(parents=True)
        (self._board / "index.html").write_text(_INDEX)
        (self._board / "data.txt").write_text("0")
        shutil.copy(self._script, self.folder / "wwwboard.pl")
        (self.folder / "wwwboard.cfg").write_text(_SETTINGS.replace("FOLDER", str(self._board)))
        port = free_port()
        self.base_url = f"http://127.0.0.1:{port}"
        self.launch([sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1", "-d", self._board.parent])
        self.wait_until_it_answers()

    def _forums(self) -> list[str]:
        return ["all"]

    def _populate(self) -> None:
        for _ in range(90):
            messages = [self._post(None)]
            for _ in range(self._chance.choice((0, 0, 1, 2, 3, 6))):
                messages.append(self._post(self._chance.choice(messages)))

    def _change(self) -> None:
        for message in self._chance.sample(list(self._messages.values()), 12):
            self._post(message)
        for _ in range(3):
            self._post(None)
        answered = {above[-1] for one in self._messages.values() if (above := one.above)}
        for number in [number for number in self._messages if number not in answered][:4]:
            self._remove(number)

    def _truth(self) -> dict[str, dict[str, dict[str, Any]]]:
        """What was sent, and has a page: the board keeps nothing else."""
        told = {
            str(one.number): {
                "forum_id": "all", "title": one.subject, "text": "\n\n".join(one.texts), "author": one.name, "replies": None,
                "at": f"{one.at:%Y-%m-%d %H:%M}",
            }
            for one in self._messages.values()
            if (self._board / "messages" / f"{one.number}.html").exists()
        }  # fmt: skip
        return {"topics": told, "comments": {}}

    def _post(self, answered: _Message | None) -> _Message:
        self._at += timedelta(minutes=self._chance.randint(3, 90))
        self._last += 1
        again = answered is not None and self._chance.random() < 0.7
        subject = f"Re: {answered.subject.removeprefix('Re: ')}" if answered and again else self._words(4)
        texts = tuple(self._words(self._chance.randint(8, 40)) for _ in range(self._chance.choice((1, 1, 2))))
        above = (*answered.above, answered.number) if answered else ()
        one = _Message(self._last, subject, self._chance.choice(_NAMES), texts, self._at, above)
        form = {"name": one.name, "subject": subject, "body": "\r\n\r\n".join(texts), "email": "x@y.example"}
        if answered is not None:
            date = f"{answered.at:%B} {answered.at:%d, %Y at %H:%M:%S}"
            form |= {
                "followup": ",".join(map(str, above)),
                "origname": answered.name,
                "origsubject": answered.subject,
                "origdate": date,
            }
        body = urllib.parse.urlencode(form).encode()
        environment = bare_environment(CONTENT_LENGTH=str(len(body)), NOW=str(int(one.at.timestamp())), TZ="UTC")
        subprocess.run(
            [self._perl, "-I.", "-e", _RUN], input=body, env=environment, cwd=self.folder, check=True, capture_output=True
        )
        self._messages[one.number] = one
        return one

    def _remove(self, number: int) -> None:
        """Remove a message as the board's administration does: its page, and its row on all pages."""
        (self._board / "messages" / f"{number}.html").unlink()
        row = re.compile(rf"<!--top: {number}-->.*?<!--end: {number}-->\n", re.DOTALL)
        for page in (self._board / "index.html", *(self._board / "messages").iterdir()):
            page.write_text(row.sub("", page.read_text()))

    def _words(self, count: int) -> str:
        return " ".join(self._chance.choice(_WORDS) for _ in range(count)).capitalize()
