"""`trawl init`: a project outside of Trawl's checkout; `trawl config systemd`: units of a host without containers."""

from __future__ import annotations

import getpass
import re
import shlex
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from cli.views.options import AsJson
from cli.views.output import complain, echo, report
from redis_components.embedded import data_dir, project_dir
from redis_components.errors import ConfigError
from redis_components.server.variables import variable
from workers.process.run_module import own_module

PACKAGE = re.compile(r"[a-z_][a-z0-9_]*")


def init(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder; by default this one.", show_default=False)] = Path(),
    package: Annotated[
        str | None, typer.Option(metavar="NAME", help="Name of the package with your spiders; by default the folder's.")
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Make a project: `trawl.toml`, site files, settings, a package for your own spiders, `.env`, an override for Docker Compose.

    Commands that run in the folder use its `sites/`, `.env` and `data/`. Nothing that exists is overwritten: where a file of the
    project is there already, nothing is written.

    **Examples:**

        trawl init forums
        trawl init . --package news_spiders
    """
    name = _package_of(folder) if package is None else package
    if not _is_free(name):
        raise ConfigError(f"--package {name}: must be lower-case letters, digits and _, and not one of Trawl's: choose another")
    files = _files(name)
    if there := [path for path in files if (folder / path).exists()]:
        raise ConfigError(f"{folder / there[0]} exists already: name another folder, or move it away; nothing was written")
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, "utf-8")
    (folder / ".env").chmod(0o600)  # it will hold passwords
    where = "" if folder == Path() else f"cd {shlex.quote(str(folder))}, then "
    spiders = f"write one into {name}/spiders, then trawl services add SPIDER and trawl up; a new version: trawl deploy"
    report(
        as_json,
        {"folder": str(folder), "package": name, "files": list(files)},
        f"{folder}: {', '.join(files)}",
        f"Next, for a forum: {where}trawl watch forum.example.org",
        f"For your own spiders: {where}{spiders} (docs/own-spiders.md)",
        "trawl doctor checks everything",
    )
    return 0


_PACKAGES = {"redis_components", "workers", "fleet_operations", "forums", "tasks", "cli", "monitoring", "demo"}
_TAKEN = frozenset({*_PACKAGES, "sites", "data", "trawl"})


def _is_free(name: str) -> bool:
    return bool(PACKAGE.fullmatch(name)) and name not in _TAKEN


def _package_of(folder: Path) -> str:
    """Return a name after the folder, if that is free."""
    name = re.sub(r"[^a-z0-9]+", "_", folder.resolve().name.lower()).strip("_")
    return next((one for one in (name, f"{name}_spiders") if name and _is_free(one)), "my_spiders")


def _files(package: str) -> dict[str, str]:
    """Return the text of each file, by its place in the project."""
    places = {
        ".env": "env.txt",
        "trawl.toml": "trawl.toml",
        "compose.override.yml": "compose.override.yml",
        "sites/README.md": "sites.md",
        f"{package}/settings.py": "settings.py.txt",
        f"{package}/spiders/__init__.py": "spiders.py.txt",
    }
    written = {place: template(name).format(package=package) for place, name in places.items()}
    return {
        "scrapy.cfg": f"[settings]\ndefault = {package}.settings\n",
        ".gitignore": ".env\ndata/\n__pycache__/\n",
        f"{package}/__init__.py": "",
        **written,
    }


def template(name: str) -> str:
    """Return a file of `cli/templates`."""
    return (Path(__file__).parents[1] / "templates" / name).read_text("utf-8")


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
    from cli.processes import EXPORTER_PORT, FLOWER_PORT, FlowerAccess, PageAccess, node_services
    from workers.process.exit_kinds import container_s, shutdown_grace

    if not variable("TRAWL_REDIS_URL"):
        raise ConfigError("TRAWL_REDIS_URL is not set: write it to .env first; services of a machine need a Redis that stays")
    services = node_services(FlowerAccess.on(FLOWER_PORT), PageAccess.on(EXPORTER_PORT))
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
        (write / name).write_text(content)
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
    from workers.node.health import WATCHDOG_S

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
