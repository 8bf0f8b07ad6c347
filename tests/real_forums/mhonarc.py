"""MHonArc, an archive of mail: Perl, static HTML pages. Debian's package `mhonarc`, and its files served by Python.

Each message is a page, and a topic. Nothing can be edited; what an administrator removes is gone.
"""

from __future__ import annotations

import mailbox
import random
import shutil
import sys
from email.message import EmailMessage
from email.utils import parseaddr, parsedate_to_datetime
from typing import Any, ClassVar

import pytest

from tests.real_forums.environment import bare_environment, free_port, run
from tests.real_forums.letters import Letters
from tests.real_forums.software import Software


class MHonArc(Software):
    """One archive, newest letters first, filled from an mbox. The site file is what `trawl sites new` writes."""

    name: ClassVar[str] = "mhonarc"
    profile: ClassVar[str] = "mhonarc"
    given: ClassVar[str | None] = "/garden/maillist.html"

    def install(self) -> None:
        self._program = shutil.which("mhonarc") or pytest.skip("MHonArc is not installed: apt-get install mhonarc")
        self._letters = Letters()
        self._sent: list[EmailMessage] = []

    def start(self) -> None:
        self._archive = self.folder / "www" / "garden"
        self._archive.mkdir(parents=True)
        port = free_port()
        self.base_url = f"http://127.0.0.1:{port}"
        self.launch([sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1", "-d", self._archive.parent])
        self.wait_until_it_answers()

    def _forums(self) -> list[str]:
        return ["garden"]

    def _populate(self) -> None:
        chance = random.Random(9)
        self._add([(thread, chance) for thread in range(120) for _ in range(chance.choice((1, 1, 2, 3, 6)))])

    def _change(self) -> None:
        chance = random.Random(10)
        self._add([(thread, chance) for thread in (*range(0, 40, 2), *range(120, 125))])
        for letter in self._letters.removed(5):
            self._mhonarc("-rmm", self._number(letter))

    def _truth(self) -> dict[str, dict[str, dict[str, Any]]]:
        """What was sent, and has a page: an archive keeps nothing else."""
        told = {}
        for letter in self._sent:
            if (self._archive / f"msg{self._number(letter)}.html").exists():
                at = parsedate_to_datetime(str(letter["Date"])).strftime("%Y-%m-%d %H:%M")
                told[self._number(letter)] = {
                    "forum_id": "garden",
                    "title": str(letter["Subject"]),
                    "text": letter.get_content(),
                    "author": parseaddr(str(letter["From"]))[0],
                    "replies": None,
                    "at": at,
                }
        return {"topics": told, "comments": {}}

    def _add(self, letters: list[tuple[int, random.Random]]) -> None:
        path = self.folder / "letters.mbox"
        path.unlink(missing_ok=True)
        box = mailbox.mbox(path)
        for thread, chance in letters:
            self._sent.append(self._letters.write(thread, chance))
            box.add(self._sent[-1].as_bytes())
        box.close()
        self._mhonarc("-add", str(path))

    def _number(self, letter: EmailMessage) -> str:
        return f"{self._sent.index(letter):05}"

    def _mhonarc(self, *words: str) -> None:
        options = ["-quiet", "-reverse", "-multipg", "-idxsize", "60", "-outdir", str(self._archive)]
        run([self._program, *options, *words], environment=bare_environment(TZ="UTC"))
