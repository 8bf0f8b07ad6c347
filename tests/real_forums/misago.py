"""Misago: Django, PostgreSQL; by its JSON API, and by its pages. From PyPI."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from sqlalchemy import make_url

from tests.real_forums.environment import ask, bare_environment, free_port, pip_environment, run
from tests.real_forums.software import Software
from tests.support.postgres_server import PostgresServer, binaries

WORLDS = Path(__file__).parent / "worlds"


class Misago(Software):
    """The forum of `worlds/misago_settings.py`."""

    name: ClassVar[str] = "misago"
    profile: ClassVar[str] = "misago"
    obeys_robots: ClassVar[bool] = False
    requirements: ClassVar[tuple[str, ...]] = ("misago==0.39.6",)

    def install(self) -> None:
        self._python = pip_environment("misago", self.requirements)

    def start(self) -> None:
        found = binaries()
        if found is None:
            raise RuntimeError("Misago needs PostgreSQL: install it (initdb and postgres on PATH)")
        self._postgres = PostgresServer(found)
        self._postgres.__enter__()
        self._environment = bare_environment(
            PYTHONPATH=str(WORLDS),
            DJANGO_SETTINGS_MODULE="misago_settings",
            TMPDIR=str(self.folder),
            **self._database(self._postgres.new_database()),
        )
        django: list[str | Path] = [self._python, "-m", "django"]
        run([*django, "migrate", "--verbosity=0"], environment=self._environment, cwd=self.folder)
        port = free_port()
        self.base_url = f"http://127.0.0.1:{port}"
        self.launch([*django, "runserver", "--noreload", f"127.0.0.1:{port}"], environment=self._environment)
        self.wait_until_it_answers("/api/threads/")

    def stop(self) -> None:
        super().stop()
        if hasattr(self, "_postgres"):
            self._postgres.close()

    def world(self, verb: str) -> Any:
        return ask(self._python, WORLDS / "misago_world.py", verb, environment=self._environment, cwd=self.folder)

    @staticmethod
    def _database(address: str) -> dict[str, str]:
        url = make_url(address)
        return {
            "FORUM_DB_NAME": url.database or "",
            "FORUM_DB_USER": url.username or "",
            "FORUM_DB_PASSWORD": str(url.password or ""),
            "FORUM_DB_HOST": str(url.query["host"]),
        }


class MisagoPages(Misago):
    """The same forum, read as its robots.txt allows."""

    name: ClassVar[str] = "misago-pages"
    profile: ClassVar[str] = "misago-pages"
    obeys_robots: ClassVar[bool] = True
