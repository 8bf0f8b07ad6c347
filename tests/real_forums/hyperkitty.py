"""HyperKitty, the archive of Mailman 3: Django, HTML pages, SQLite. From PyPI."""

from __future__ import annotations

import json
import mailbox
import random
from pathlib import Path
from typing import Any, ClassVar

from tests.real_forums.environment import ask, bare_environment, free_port, pip_environment
from tests.real_forums.letters import LIST, Letters
from tests.real_forums.software import Software

WORLDS = Path(__file__).parent / "worlds"


class HyperKitty(Software):
    """One list, filled from an mbox. The site file is what `trawl sites new` writes."""

    name: ClassVar[str] = "hyperkitty"
    profile: ClassVar[str] = "hyperkitty"
    given: ClassVar[str | None] = f"/list/{LIST}/"

    def install(self) -> None:
        """Whoosh is imported by the search that is not used."""
        self._python = pip_environment(self.name, ["HyperKitty==1.3.12", "django-mailman3==1.3.15", "Django==5.0.14", "Whoosh"])

    def start(self) -> None:
        port = free_port()
        self.base_url = f"http://127.0.0.1:{port}/hyperkitty"
        self._environment = bare_environment(FORUM_FOLDER=str(self.folder))
        self._letters = Letters()
        self._script("found")
        self.launch([self._python, WORLDS / "hyperkitty_world.py", "serve", str(port)], environment=self._environment)
        self.wait_until_it_answers("/")

    def _forums(self) -> list[str]:
        return [LIST]

    def _populate(self) -> None:
        chance = random.Random(9)
        self._import([(thread, chance) for thread in range(210) for _ in range(chance.choice((1, 1, 2, 3, 6)))])

    def _change(self) -> None:
        chance = random.Random(10)
        self._import([(thread, chance) for thread in (*range(0, 40, 2), *range(210, 215))])
        removed = [str(letter["Message-ID"]).strip("<>") for letter in self._letters.removed(5)]
        self._script("remove", json.dumps(removed))

    def _truth(self) -> Any:
        return self._script("truth")

    def _import(self, letters: list[tuple[int, random.Random]]) -> None:
        path = self.folder / "letters.mbox"
        path.unlink(missing_ok=True)
        box = mailbox.mbox(path)
        for thread, chance in letters:
            box.add(self._letters.write(thread, chance).as_bytes())
        box.close()
        self._script("import", LIST, str(path))

    def _script(self, *words: str) -> Any:
        return ask(self._python, WORLDS / "hyperkitty_world.py", *words, environment=self._environment, cwd=self.folder)
