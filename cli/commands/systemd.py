"""`trawl systemd`: units for a host without containers."""

from __future__ import annotations

import getpass
from pathlib import Path
from typing import Annotated

import typer

from cli.processes.node_services import EXPORTER_PORT, FLOWER_PORT, FlowerAccess, node_services
from cli.processes.systemd_units import Host, units
from cli.views.output import complain, say
from redis_components.embedded import data_dir, project_dir
from redis_components.errors import ConfigError, TrawlError
from redis_components.server.variables import variable
from workers.process.run_module import own_module
from workers.process.shutdown_times import container_s, shutdown_grace


def systemd(
    write: Annotated[Path | None, typer.Option(metavar="DIR", help="Write the files there instead of printing them.")] = None,
    user: Annotated[str | None, typer.Option(help="Whom the processes run as; default: you.")] = None,
) -> int:
    """Print systemd units for this machine: worker, beat, Flower, exporter, and a target that starts them all; the HTTP API, too,
    where a token of it is set.

    They run what is installed here, in the current folder with its `.env`, and may write to the data folder alone. A stop gives
    crawlers the time that TRAWL_SHUTDOWN_GRACE_S asks for. Redis, with an append-only file, is a separate unit.

    **Examples:**

        trawl systemd > trawl-units.txt
        sudo trawl systemd --user trawl --write /etc/systemd/system
        sudo systemctl daemon-reload && sudo systemctl enable --now trawl.target
    """
    if not variable("TRAWL_REDIS_URL"):
        raise ConfigError("TRAWL_REDIS_URL is not set: write it to .env first; services of a machine need a Redis that stays")
    services = node_services(FlowerAccess.on(FLOWER_PORT, kept=True), EXPORTER_PORT)
    commands = {service.name: [word for word in service.command if not word.startswith("--hostname=")] for service in services}
    if any(variable(name) for name in ("TRAWL_API_ACT_TOKEN", "TRAWL_API_READ_TOKEN")):
        commands["api"] = own_module("monitoring.api")
    host = Host(
        project=project_dir(),
        data=data_dir(),
        user=user or getpass.getuser(),
        stop_s=round(container_s(shutdown_grace())),
        commands=commands,
    )
    for name, content in units(host).items():
        if write is None:
            say(f"# {name}\n{content}")
            continue
        try:
            (write / name).write_text(content)
        except OSError as error:
            raise TrawlError(
                f"{write / name} cannot be written ({error.strerror}): choose another folder, or use sudo"
            ) from error
        say(f"wrote {write / name}")
    if not host.data.is_dir():
        complain(f"make the data folder before they start: install -d -o {host.user} -m 700 {host.data}")
    return 0
