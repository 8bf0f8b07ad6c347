"""The services of one machine, as `trawl up` and the demo start them: worker, beat, Flower, exporter."""

from __future__ import annotations

import os
import secrets
import socket
from dataclasses import dataclass, field
from pathlib import Path

from redis_components.embedded import data_dir
from redis_components.embedded.files import free_port, is_free
from redis_components.errors import TrawlError
from workers.environment.variables import Api, Flower
from workers.process.exit_kinds import node_s, shutdown_grace
from workers.process.run_module import FOLDER, own_module

from .services import Service


class PortInUse(TrawlError):
    """Another program listens on this port; free it, or choose another."""


def take(flower: int, exporter: int) -> tuple[int, int]:
    """Return the ports, for 0 any free one. Raises PortInUse with all that are in use, and the options that name others."""
    wanted = (flower, "Flower", "--port-flower"), (exporter, "the exporter", "--port-exporter")
    used = [(f"port {port} for {of}", option) for port, of, option in wanted if port and not is_free(port)]
    if used:
        named, options = " and ".join(one for one, _ in used), " and ".join(option for _, option in used)
        are, end = ("are", "those") if len(used) > 1 else ("is", "that")
        raise PortInUse(f"{named} {are} in use by another program: end {end}, or choose another with {options} (0: any)")
    return flower or free_port(), exporter or free_port()


def prefer(port: int) -> int:
    """`port` if nothing listens there, else any free one."""
    return port if is_free(port) else free_port()


def answers(port: int) -> bool:
    """Return True if a server of this machine accepts connections at this port."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
    except OSError:
        return False


FLOWER_PORT = 5555  # Flower's own default
EXPORTER_PORT = 9410  # as `monitoring.exporter`
FLOWER_CONFIG = Path(FOLDER) / "flowerconfig.py"  # by its place: Flower would read a file of that name in the current folder
FLOWER_SAVES_MS = 60_000
HELPER_STOP_S = 5.0  # those that only look have nothing to finish


@dataclass(frozen=True, kw_only=True)
class FlowerAccess:
    """Address and login of Flower. Its users may also stop tasks, so it always has a password."""

    port: int
    user: str = "trawl"
    password: str = field(default_factory=lambda: secrets.token_urlsafe(9), repr=False)
    given: bool = False  # by TRAWL_FLOWER_AUTH: who gave it knows it, and it must not get into a journal
    kept: bool = False

    @classmethod
    def on(cls, port: int, *, kept: bool = False) -> FlowerAccess:
        """With TRAWL_FLOWER_AUTH (`user:password`), else a new password; `kept`: it will be on this port again, and keeps what it
        knows until then. Raises ConfigError.
        """
        given = Flower.read().flower_auth
        if given is None:
            return cls(port=port, kept=kept)
        user, _, password = given.get_secret_value().partition(":")
        return cls(port=port, user=user, password=password, given=True, kept=kept)

    @property
    def how_to_log_in(self) -> str:
        """The new password; of one that was given only where it stands."""
        return "the password of TRAWL_FLOWER_AUTH" if self.given else f"password {self.password}"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@dataclass(frozen=True, kw_only=True)
class PageAccess:
    """Address of the status page, and the token that opens it for acting."""

    port: int
    token: str = field(default_factory=lambda: secrets.token_urlsafe(15), repr=False)
    given: bool = False  # by TRAWL_API_ACT_TOKEN, which is not printed

    @classmethod
    def on(cls, port: int) -> PageAccess:
        """With TRAWL_API_ACT_TOKEN, else a new token. Raises ConfigError."""
        given = Api.read().api_act_token
        return cls(port=port) if given is None else cls(port=port, token=given.get_secret_value(), given=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def link(self) -> str:
        """The address that is logged in; of a token that was given the address alone."""
        return f"{self.url}/" if self.given else f"{self.url}/login?token={self.token}"


def node_services(flower: FlowerAccess, page: PageAccess) -> list[Service]:
    """In the order in which they are started; they are stopped the other way round, the worker with its crawlers last.

    Raises ConfigError.
    """
    return [
        # Not celery@host: a worker started by hand on the same machine, or a second `trawl up`, needs another name.
        Service(
            name="worker",
            command=_celery("worker", f"--hostname=up-{os.getpid()}@%h", "--loglevel=INFO"),
            environment=_project(),
            stop_s=node_s(shutdown_grace()),
            role="worker",
        ),
        Service(name="beat", command=_celery("beat", "--loglevel=INFO"), stop_s=HELPER_STOP_S, role="beat"),
        Service(
            name="flower",
            command=_celery("flower", "--address=127.0.0.1", f"--port={flower.port}", f"--conf={FLOWER_CONFIG}", *_kept(flower)),
            environment={"FLOWER_BASIC_AUTH": f"{flower.user}:{flower.password}"},  # not where `ps` shows it
            stop_s=HELPER_STOP_S,
        ),
        Service(
            name="exporter",
            command=tuple(own_module("monitoring.exporter", f"--port={page.port}")),
            environment={} if page.given else {"TRAWL_API_ACT_TOKEN": page.token},
            stop_s=HELPER_STOP_S,
        ),
    ]


def _kept(flower: FlowerAccess) -> tuple[str, ...]:
    """Its tasks outlive its restart: kept each minute and at its end, in a file of its port, for a machine may have several."""
    db = data_dir() / f"flower-{flower.port}"
    return ("--persistent=True", f"--db={db}", f"--state-save-interval={FLOWER_SAVES_MS}") if flower.kept else ()


def _project() -> dict[str, str]:
    """Outside of a Scrapy project crawlers would know no spider: there they get Trawl's own."""
    here = Path.cwd()
    if "SCRAPY_SETTINGS_MODULE" in os.environ or any((folder / "scrapy.cfg").is_file() for folder in (here, *here.parents)):
        return {}
    return {"SCRAPY_SETTINGS_MODULE": "workers.settings"}


def _celery(command: str, *options: str) -> tuple[str, ...]:
    return tuple(own_module("tasks", "--quiet", command, *options))
