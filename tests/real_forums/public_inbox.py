"""public-inbox, an archive of mailing lists: Perl, HTML pages, a git repository. Debian's package `public-inbox`.

Its list links to a thread's newest message. Nothing can be edited; what an administrator removes is gone.
"""

from __future__ import annotations

import email
import email.policy
import random
import re
import shutil
import subprocess
from email.utils import parseaddr, parsedate_to_datetime
from typing import Any, ClassVar

import pytest

from tests.real_forums.environment import bare_environment, free_port
from tests.real_forums.letters import Letters
from tests.real_forums.software import Software
from tests.support.processes import wait_until


class PublicInbox(Software):
    """One inbox, filled from a Maildir. The site file is what `trawl sites new` writes."""

    name: ClassVar[str] = "public-inbox"
    profile: ClassVar[str] = "public-inbox"
    given: ClassVar[str | None] = "/garden/"

    def install(self) -> None:
        if not shutil.which("public-inbox-httpd"):
            pytest.skip("public-inbox is not installed: apt-get install public-inbox")
        self._environment = bare_environment(
            HOME=str(self.folder), PATH="/usr/bin:/bin", PI_CONFIG=str(self.folder / "config"), TZ="UTC"
        )
        self._letters = Letters()

    def start(self) -> None:
        port = free_port()
        self.base_url = f"http://127.0.0.1:{port}"
        self._inbox, self._maildir = self.folder / "garden", self.folder / "mail"
        for part in ("new", "cur", "tmp"):
            (self._maildir / part).mkdir(parents=True)
        self._run("public-inbox-init", "-V2", "garden", str(self._inbox), f"{self.base_url}/garden", "garden@example.org")
        for key, value in (
            ("publicinbox.garden.watch", f"maildir:{self._maildir}"),
            ("publicinboxwatch.spamcheck", "none"),
        ):
            self._run("git", "config", "-f", str(self.folder / "config"), key, value)
        self.launch(["public-inbox-watch"], environment=self._environment)
        self.launch(["public-inbox-httpd", "-l", f"127.0.0.1:{port}", "-W0"], environment=self._environment)
        self.wait_until_it_answers("/garden/")

    def _forums(self) -> list[str]:
        return ["garden"]

    def _populate(self) -> None:
        chance = random.Random(9)
        for thread in range(210):
            for _ in range(chance.choice((1, 1, 2, 3, 6))):
                self._send(thread, chance)
        self._wait()

    def _change(self) -> None:
        chance = random.Random(10)
        for thread in range(0, 40, 2):
            self._send(thread, chance)
        for later in range(210, 215):
            self._send(later, chance)
        for message in self._letters.removed(5):
            self._run("public-inbox-learn", "rm", "--all", stdin=message.as_bytes())
        self._wait()

    def _truth(self) -> dict[str, dict[str, dict[str, Any]]]:
        """From the messages in the archive's git, which are what its pages are made from."""
        git = ("git", f"--git-dir={self._inbox}/git/0.git")
        topics: dict[str, dict[str, Any]] = {}
        comments: dict[str, dict[str, Any]] = {}
        for line in self._run(*git, "log", "--reverse", "--format=%H %s", "master").splitlines():
            commit, _, subject = line.partition(" ")
            if subject.startswith("rm"):
                continue
            kept = self._run(*git, "ls-tree", "--name-only", commit).split()
            if "m" not in kept:
                continue
            message = email.message_from_bytes(self._bytes(*git, "show", f"{commit}:m"), policy=email.policy.default)
            name = str(message["Message-ID"]).strip("<>")
            if name not in self._letters.ids():
                continue
            at = parsedate_to_datetime(str(message["Date"])).strftime("%Y-%m-%d %H:%M")
            author = parseaddr(str(message["From"]))[0]
            told = {"text": message.get_content(), "author": author, "at": at}  # type: ignore[attr-defined]
            answered = str(message["In-Reply-To"] or "").strip("<>")
            if not answered:
                topics[name] = {**told, "forum_id": "garden", "title": str(message["Subject"]), "replies": None}
            else:
                root = re.findall(r"<([^>]+)>", str(message["References"]))[0]
                comments[name] = {**told, "topic_id": root, "parent": None if answered == root else answered}
        return {"topics": topics, "comments": comments}

    def _send(self, thread: int, chance: random.Random) -> None:
        message = self._letters.write(thread, chance)
        (self._maildir / "new" / f"{self._letters.count}.host").write_bytes(message.as_bytes())

    def _wait(self) -> None:
        """Until the archive has what was sent."""
        git = ("git", f"--git-dir={self._inbox}/git/0.git", "log", "--oneline", "master")
        wait_until(lambda: len(self._run(*git).splitlines()) >= self._letters.count, self.log, 120)

    def _run(self, *command: str, stdin: bytes = b"") -> str:
        return self._bytes(*command, stdin=stdin).decode()

    def _bytes(self, *command: str, stdin: bytes = b"") -> bytes:
        done = subprocess.run(
            command, env=self._environment, cwd=self.folder, input=stdin, capture_output=True, timeout=120, check=False
        )
        assert done.returncode == 0, (command, done.stderr.decode(errors="replace"))
        return done.stdout
