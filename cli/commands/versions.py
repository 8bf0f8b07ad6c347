"""`trawl versions`: what was deployed for a service."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from cli.access.names import check_spiders
from cli.access.redis import redis_client
from cli.commands.deploy import switch
from cli.views.output import console, iso, plain_table, print_json, say
from redis_components.errors import ConfigError
from workers.deploy.deploy import find
from workers.deploy.deploy import remove as forget
from workers.state.versions import Deployments

app = typer.Typer(no_args_is_help=True, help="List, use and remove deployed versions (trawl deploy).")
Service = Annotated[str, typer.Argument(metavar="SERVICE", help="Name of the service.", show_default=False)]
Name = Annotated[str, typer.Argument(metavar="VERSION", help="The version, or its first digits.", show_default=False)]


@app.command("list")
def list_versions(
    service: Service, as_json: Annotated[bool, typer.Option("--json", help="Print them as one line of JSON.")] = False
) -> int:
    """List the versions of a service, the newest last; * is the one that its crawlers have."""
    with redis_client() as client:
        known = Deployments(client).of(service)
        if not known.versions:
            check_spiders(client, [service])
    if as_json:
        print_json(asdict(known))
        return 0
    table = plain_table("", "VERSION", "DEPLOYED", "BY", "NOTE")
    for one in known.versions:
        table.add_row("*" if one.name == known.current else "", one.name, iso(one.at)[:16], one.by, one.note)
    console().print(table)
    return 0


@app.command()
def use(service: Service, version: Name) -> int:
    """Pin a version: install it where it is missing, and replace the crawlers one by one. `none`: what the nodes have."""
    with redis_client() as client:
        return switch(client, service, "" if version == "none" else find(client, service, version).name)


@app.command()
def rollback(service: Service) -> int:
    """Give the crawlers the version before the present one."""
    with redis_client() as client:
        known = Deployments(client).of(service)
        if not known.current:
            raise ConfigError(f"{service} has no deployed version: trawl deploy gives it one")
        return switch(client, service, known.previous)


@app.command()
def remove(service: Service, version: Name) -> int:
    """Forget a version that the crawlers do not have, and delete its wheel."""
    with redis_client() as client:
        forget(client, service, version)
    say(f"{service}: version {version} is removed")
    return 0
