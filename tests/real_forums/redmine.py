"""Redmine's boards: Ruby on Rails, HTML pages, SQLite. Debian's packages `redmine-sqlite` and `puma`. No profile was written for
it: its site file is what `trawl sites new` writes.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tests.real_forums.environment import bare_environment, free_port, run
from tests.real_forums.software import Software

WORLD = Path(__file__).parent / "worlds" / "redmine_world.rb"
APPLICATION = Path("/usr/share/redmine")
EMPTY = Path("/var/lib/dbconfig-common/sqlite3/redmine/instances/default/redmine_default")
"""The database that its package makes."""


class Redmine(Software):
    """Two boards of a project."""

    name: ClassVar[str] = "redmine"
    profile: ClassVar[str] = "generic"
    given: ClassVar[str | None] = "/projects/garden/boards"
    starts_within_s: ClassVar[float] = 120

    def install(self) -> None:
        if not (EMPTY.exists() and shutil.which("puma")):
            pytest.skip("Redmine is not installed: apt-get install redmine-sqlite puma")

    def start(self) -> None:
        database = self.folder / "redmine.sqlite"
        shutil.copy(EMPTY, database)
        self._environment = bare_environment(
            DATABASE_URL=f"sqlite3:{database}", RAILS_ENV="production", X_DEBIAN_SITEID="default", TZ="UTC", LANG="C.UTF-8"
        )
        self.world("found")
        port = free_port()
        self.base_url = f"http://127.0.0.1:{port}"
        serve = ["puma", "-e", "production", "-b", f"tcp://127.0.0.1:{port}", "-t", "2:4", "config.ru"]
        self.launch([*serve], environment=self._environment, cwd=APPLICATION)
        self.wait_until_it_answers()

    def world(self, verb: str) -> Any:
        said = run(["bundle", "exec", "rails", "runner", WORLD, verb], environment=self._environment, cwd=APPLICATION)
        return json.loads(said.splitlines()[-1])
