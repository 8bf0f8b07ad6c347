"""The services of one machine, as `trawl up` and the demo start them: worker, beat, Flower, exporter."""

from __future__ import annotations

import os
import secrets
import sys
from dataclasses import dataclass, field
from pathlib import Path

from redis_components.errors import ConfigError
from workers.grace import node_s, shutdown_grace

from .services import Service

FLOWER_PORT = 5555  # Flower's own default
EXPORTER_PORT = 9410  # as `monitoring.exporter`
HELPER_STOP_S = 5.0  # those that only look have nothing to finish


@dataclass(frozen=True, kw_only=True)
class FlowerAccess:
    """Where Flower is, and who may look. Whoever may look may also stop tasks, so nobody gets in without a password."""

    port: int
    user: str = "trawl"
    password: str = field(default_factory=lambda: secrets.token_urlsafe(9))

    @classmethod
    def on(cls, port: int) -> FlowerAccess:
        """With TRAWL_FLOWER_AUTH (`user:password`), else a new password. Raises ConfigError."""
        given = os.environ.get("TRAWL_FLOWER_AUTH")
        if not given:
            return cls(port=port)
        user, colon, password = given.partition(":")
        if not (user and colon and password) or "," in given:  # Flower reads a comma as the end of this pair
            raise ConfigError("TRAWL_FLOWER_AUTH is not of the form user:password (without commas): correct it, or unset it")
        return cls(port=port, user=user, password=password)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


def node_services(flower: FlowerAccess, exporter_port: int) -> list[Service]:
    """In the order in which they are started; they are stopped the other way round, the worker with its crawlers last.

    Raises ConfigError.
    """
    return [
        # Not celery@host: a worker started by hand on the same machine, or a second `trawl up`, needs a name of its own.
        Service(
            name="worker",
            command=_celery("worker", f"--hostname=up-{os.getpid()}@%h", "--loglevel=INFO"),
            environment=_project(),
            stop_s=node_s(shutdown_grace()),
        ),
        Service(name="beat", command=_celery("beat", "--loglevel=INFO"), stop_s=HELPER_STOP_S),
        Service(
            name="flower",
            command=_celery("flower", "--address=127.0.0.1", f"--port={flower.port}"),
            environment={"FLOWER_BASIC_AUTH": f"{flower.user}:{flower.password}"},  # not where `ps` shows it
            stop_s=HELPER_STOP_S,
        ),
        Service(
            name="exporter",
            command=(sys.executable, "-m", "monitoring.exporter", f"--port={exporter_port}"),
            stop_s=HELPER_STOP_S,
        ),
    ]


def _project() -> dict[str, str]:
    """Outside of a Scrapy project crawlers would know no spider: there they get Trawl's own."""
    here = Path.cwd()
    if "SCRAPY_SETTINGS_MODULE" in os.environ or any((folder / "scrapy.cfg").is_file() for folder in (here, *here.parents)):
        return {}
    return {"SCRAPY_SETTINGS_MODULE": "workers.settings"}


def _celery(command: str, *options: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "celery", "-A", "tasks", "--quiet", command, *options)
