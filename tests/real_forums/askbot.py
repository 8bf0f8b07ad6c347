"""Askbot, questions with answers and comments: Django, HTML pages, SQLite. From PyPI.

Of a post with many comments the page shows the first five, of a long one its beginning; the rest is asked for by a script. A new
comment is not seen in the list, unless the board's settings say otherwise.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from tests.real_forums.environment import ask, bare_environment, free_port, pip_environment, run
from tests.real_forums.software import Software

WORLDS = Path(__file__).parent / "worlds"
SETUP = {"proj-name": "askbot_site", "db-engine": "sqlite", "domain-name": "example.org", "timezone": "UTC"}


class Askbot(Software):
    """The project that `askbot-setup` makes. The site file is what `trawl sites new` writes."""

    name: ClassVar[str] = "askbot"
    profile: ClassVar[str] = "askbot"
    given: ClassVar[str | None] = "/questions/"
    starts_within_s: ClassVar[float] = 300
    unlisted: ClassVar[frozenset[str]] = frozenset({"comment"})
    requirements: ClassVar[tuple[str, ...]] = ("askbot==0.13.0", "Django==5.2.19")

    def install(self) -> None:
        self._python = pip_environment(self.name, self.requirements)

    def start(self) -> None:
        site = self.folder / "askbot-board"
        options = {
            **SETUP,
            "root-directory": str(site),
            "db-name": str(site / "askbot.sqlite"),
            "admin-name": "a",
            "admin-email": "a@b.org",
        }
        words = [word for name, value in options.items() for word in (f"--{name}", value)]
        run([self._python.parent / "askbot-setup", "--noinput", "--force", *words], cwd=self.folder)
        self._environment = bare_environment(
            FORUM_FOLDER=str(self.folder), PYTHONPATH=f"{site}:{WORLDS}", DJANGO_SETTINGS_MODULE="askbot_settings"
        )
        django: list[str | Path] = [self._python, "-m", "django"]
        run([*django, "migrate", "--verbosity=0"], environment=self._environment, cwd=self.folder)
        self.world("found")
        port = free_port()
        self.base_url = f"http://127.0.0.1:{port}"
        serve = ["runserver", "--noreload", "--insecure", f"127.0.0.1:{port}"]
        self.launch([*django, *serve], environment=self._environment)
        self.wait_until_it_answers("/questions/")

    def world(self, verb: str) -> Any:
        return ask(self._python, WORLDS / "askbot_world.py", verb, environment=self._environment, cwd=self.folder)
