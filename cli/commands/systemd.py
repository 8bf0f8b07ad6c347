"""`trawl config systemd`: units for a host without containers: worker, beat, Flower, exporter, API and backups of one
installation.
"""

from __future__ import annotations

import getpass
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from cli.processes.node_services import EXPORTER_PORT, FLOWER_PORT, FlowerAccess, PageAccess, node_services
from cli.views.output import complain, echo
from redis_components.embedded import data_dir, project_dir
from redis_components.errors import ConfigError, TrawlError
from redis_components.server.variables import variable
from workers.process.exit_kinds import container_s, shutdown_grace
from workers.process.run_module import own_module
from workers.process.status_file import WATCHDOG_S

from .init import template

KEPT_DAYS = 14


def systemd(
    write: Annotated[Path | None, typer.Option(metavar="DIR", help="Write the files there instead of printing them.")] = None,
    user: Annotated[str | None, typer.Option(help="User of the processes; by default you.")] = None,
    backups: Annotated[
        Path | None, typer.Option(metavar="DIR", help=f"A backup into this folder each night; they stay for {KEPT_DAYS} days.")
    ] = None,
) -> int:
    """Print systemd units for this machine: worker, beat, Flower, exporter, and a target that starts them all; the HTTP API, too,
    where a token of it is set.

    They run what is installed here, in the current folder with its `.env`, and may write to the data folder alone. A stop gives
    crawlers the time that TRAWL_SHUTDOWN_GRACE_S asks for. Redis, with an append-only file, is a separate unit.

    **Examples:**

        trawl config systemd > trawl-units.txt
        sudo trawl config systemd --user trawl --backups /mnt/backups --write /etc/systemd/system
        sudo systemctl daemon-reload && sudo systemctl enable --now trawl.target
    """
    if not variable("TRAWL_REDIS_URL"):
        raise ConfigError("TRAWL_REDIS_URL is not set: write it to .env first; services of a machine need a Redis that stays")
    services = node_services(FlowerAccess.on(FLOWER_PORT, kept=True), PageAccess.on(EXPORTER_PORT))
    commands = {service.name: [word for word in service.command if not word.startswith("--hostname=")] for service in services}
    if any(variable(name) for name in ("TRAWL_API_ACT_TOKEN", "TRAWL_API_READ_TOKEN")):
        commands["api"] = own_module("monitoring.api")
    host = Host(
        project=project_dir(),
        data=data_dir(),
        user=user or getpass.getuser(),
        stop_s=round(container_s(shutdown_grace())),
        commands=commands,
        backups=backups and backups.absolute(),
    )
    for name, content in units(host).items():
        if write is None:
            echo(f"# {name}\n{content}")
            continue
        try:
            (write / name).write_text(content)
        except OSError as error:
            raise TrawlError(
                f"{write / name} cannot be written ({error.strerror}): choose another folder, or use sudo"
            ) from error
        echo(f"wrote {write / name}")
    for folder in filter(None, (host.data, host.backups)):
        if not folder.is_dir():
            complain(f"make this folder before they start: install -d -o {host.user} -m 700 {folder}")
    if backups and (variable("TRAWL_DATABASE_URL") or "").startswith("postgresql") and not shutil.which("pg_dump"):
        complain("a backup of PostgreSQL needs pg_dump of its version or a newer one: install postgresql-client")
    return 0


@dataclass(frozen=True, kw_only=True)
class Host:
    """The installation that the units start."""

    project: Path  # the working directory: `.env`, `scrapy.cfg`, `sites/`
    data: Path  # TRAWL_DATA_DIR
    user: str
    stop_s: int  # from SIGTERM to SIGKILL
    commands: Mapping[str, Sequence[str]]  # role -> program and arguments
    backups: Path | None = None  # the folder of the timer's backups


_DESCRIPTIONS = {
    "worker": "Trawl: a node, which hosts crawlers and runs the fleet's tasks",
    "beat": "Trawl: the clock; several of them may run, one sends",
    "flower": "Trawl: Flower, on this machine only",
    "exporter": "Trawl: metrics and status page, on this machine only",
    "api": "Trawl: the HTTP API, on this machine only",
    "backup": "Trawl: a backup of Redis and the database, started by trawl-backup.timer",
}


def units(host: Host) -> dict[str, str]:
    """Return the content of each file by its name; `trawl.target` starts and stops all the others."""
    found = {f"trawl-{role}.service": _service(host, role, command) for role, command in host.commands.items()}
    wanted, backups = [*found], host.backups
    if backups:
        wanted.append("trawl-backup.timer")
        old = ["/usr/bin/env", "find", str(backups), "-name", "*.backup", "-mtime", f"+{KEPT_DAYS}", "-delete"]
        life = f"Type=oneshot\nExecStartPost={_words(old)}\n"
        command = own_module("cli.main", "backup", "create", str(backups))
        found["trawl-backup.service"] = _unit(host, "backup", command, life, writes=[host.data, backups])
        found["trawl-backup.timer"] = template("systemd-timer.txt")
    return {**found, "trawl.target": template("systemd-target.txt").format(services=" ".join(wanted))}


def _service(host: Host, role: str, command: Sequence[str]) -> str:
    life = f"Restart=always\nRestartSec=2\nTimeoutStopSec={host.stop_s}\n"
    if role == "worker":
        life += template("systemd-worker.txt")
    if role in ("worker", "beat"):
        life += template("systemd-watchdog.txt").format(watchdog_s=WATCHDOG_S)
    install = "\n[Install]\nWantedBy=trawl.target\n"
    return _unit(host, role, command, life, part_of="PartOf=trawl.target\n", install=install, writes=[host.data])


def _unit(host: Host, role: str, command: Sequence[str], life: str, *, writes: Sequence[Path], **more: str) -> str:
    return template("systemd-service.txt").format(
        description=_DESCRIPTIONS[role],
        user=host.user,
        project=_path(host.project),
        command=_words(command),
        life=life,
        data=_words([*map(str, writes)]),
        **{"part_of": "", "install": "", **more},
    )


def _words(command: Sequence[str]) -> str:
    return " ".join(map(_word, command))


def _path(path: Path) -> str:
    """Return the path for WorkingDirectory, which takes the whole line."""
    return str(path).replace("%", "%%")


def _word(text: str) -> str:
    """Return one word of a command line in systemd's quoting, in which `%` and `$` are special."""
    text = text.replace("\\", "\\\\").replace("%", "%%").replace("$", "$$")
    return f'"{text.replace(chr(34), chr(92) + chr(34))}"' if any(one in text for one in " \t'\"") else text
