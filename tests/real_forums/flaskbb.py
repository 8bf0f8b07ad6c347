"""FlaskBB: Flask, HTML pages, SQLite. From PyPI."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from tests.real_forums.environment import ask, bare_environment, free_port, pip_environment
from tests.real_forums.software import Software

WORLDS = Path(__file__).parent / "worlds"


class FlaskBB(Software):
    """The forum of `worlds/flaskbb_app.py`."""

    name: ClassVar[str] = "flaskbb"
    profile: ClassVar[str] = "flaskbb"

    def install(self) -> None:
        """FlaskBB 2.0.2 names versions of 2018; these are the last ones that work with it and with the Python of today."""
        requirements = (WORLDS / "flaskbb_requirements.txt").read_text().split()
        self._python = pip_environment(self.name, requirements, complete=True)

    def start(self) -> None:
        self._environment = bare_environment(FORUM_FOLDER=str(self.folder))
        self.world("found")
        port = free_port()
        self.base_url = f"http://127.0.0.1:{port}"
        self.launch([self._python, WORLDS / "flaskbb_app.py", str(port)], environment=self._environment)
        self.wait_until_it_answers()

    def world(self, verb: str) -> Any:
        return ask(self._python, WORLDS / "flaskbb_world.py", verb, environment=self._environment, cwd=self.folder)
