"""Forums that are Django applications, from PyPI, with SQLite: settings and script of each are in `worlds/`, by its name."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from tests.real_forums.environment import ask, bare_environment, free_port, pip_environment, run
from tests.real_forums.software import Software

WORLDS = Path(__file__).parent / "worlds"


class DjangoForum(Software):
    """The forum of `worlds/NAME_settings.py`, without a profile."""

    profile: ClassVar[str] = "generic"
    requirements: ClassVar[tuple[str, ...]]
    """What pip installs, pinned."""

    def install(self) -> None:
        self._python = pip_environment(self.name, self.requirements)

    def start(self) -> None:
        self._environment = bare_environment(
            FORUM_FOLDER=str(self.folder), PYTHONPATH=str(WORLDS), DJANGO_SETTINGS_MODULE=f"{self.name}_settings"
        )
        django: list[str | Path] = [self._python, "-m", "django"]
        run([*django, "migrate", "--verbosity=0"], environment=self._environment, cwd=self.folder)
        self.world("found")
        port = free_port()
        self.base_url = f"http://127.0.0.1:{port}"
        self.launch([*django, "runserver", "--noreload", f"127.0.0.1:{port}"], environment=self._environment)
        self.wait_until_it_answers()

    def world(self, verb: str) -> Any:
        return ask(self._python, WORLDS / f"{self.name}_world.py", verb, environment=self._environment, cwd=self.folder)
