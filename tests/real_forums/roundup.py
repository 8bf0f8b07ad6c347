"""Roundup, a tracker whose issues have messages: HTML pages, SQLite. From PyPI.

No profile was written for it: its site file is what `trawl sites new` writes. Its issues show the newest message first, and its
list says only how long ago something was said.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from tests.real_forums.environment import ask, bare_environment, free_port, pip_environment, run
from tests.real_forums.software import Software

WORLD = Path(__file__).parent / "worlds" / "roundup_world.py"


class Roundup(Software):
    """A tracker of its classic template."""

    name: ClassVar[str] = "roundup"
    profile: ClassVar[str] = "generic"
    given: ClassVar[str | None] = "/issue?@sort=-activity&@columns=id,activity,title,creator,status"

    def install(self) -> None:
        self._python = pip_environment(self.name, ["roundup==2.6.0"])

    def start(self) -> None:
        self._environment = bare_environment()
        self._tracker = self.folder / "tracker"
        port = free_port()
        self.base_url = f"http://127.0.0.1:{port}"
        options = f"tracker_web={self.base_url}/,mail_domain=example.org,mail_host=localhost"
        self._admin("install", "classic", "sqlite", options)
        (self._tracker / "detectors" / "nosyreaction.py").unlink()  # sends mail
        self._admin("initialise", "password")
        self.launch([self._python, WORLD, "serve", self._tracker, str(port)], environment=self._environment)
        self.wait_until_it_answers()

    def world(self, verb: str) -> Any:
        return ask(self._python, WORLD, verb, str(self._tracker), environment=self._environment, cwd=self.folder)

    def _admin(self, *words: str) -> None:
        run([self._python.parent / "roundup-admin", "-i", self._tracker, *words], environment=self._environment, cwd=self.folder)
