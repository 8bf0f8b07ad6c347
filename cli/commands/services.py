"""`trawl services`: declare, change and check the services of the fleet while it runs."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import redis
import typer

from cli.access import redis_client
from cli.views.options import AsJson, ScrapySettings, Service, SpiderArguments, command_group
from cli.views.options import Services as OfServices
from cli.views.output import complain, counted, echo, print_json, report
from cli.views.tables import Columns, show
from fleet_operations.consumers.declared import ConsumerPlaces
from fleet_operations.deploy.deploy import check as check_one
from redis_components.errors import ConfigError, unknown_name
from redis_components.server.printable import masked, masked_values
from workers.crawler.orders import pairs
from workers.fleet.sizes import check_service, declarations, value_origins
from workers.state.services import MAX_WAITING, ServiceRecord, Services

from .deploy import versions

app = command_group()
app.add_typer(versions, name="versions")


@app.command("list")
def list_services(as_json: AsJson = False) -> int:
    """List the fleet's services and where each is declared."""
    with redis_client() as client:
        rows = [{"service": name, **row} for name, row in _rows(client).items()]
    columns: Columns = {
        "SERVICE": "service",
        "SIZE": lambda row: str(row["size"]),
        "SPIDER": "spider",
        "PROJECT": lambda row: row["project"] or "-",
        "CONSUMER": lambda row: row["consumer"] or "-",
        "DECLARED IN": "declared",
    }
    show(rows, columns, as_json)
    return 0


@app.command("show")
def show_service(name: Service, as_json: AsJson = False) -> int:
    """Show how a service is declared, where each value comes from, and where its items are written.

    A size set by `trawl scale` is over the declaration of `trawl services add`, then `trawl.toml`, then TRAWL_FLEET.
    """
    with redis_client() as client:
        found = declarations(client)
        if name not in found:
            raise unknown_name("service", name, found)
        values, place = value_origins(client, name, found[name]), ConsumerPlaces(client).all().get(name)
    row = _row(name, *found[name])
    row |= {field: value for field, (value, _) in values.items() if field in ("size", "autoscale")}
    row["written"] = f"{place.target} on {place.node}" if place else ""
    origins = {field: origin for field, (_, origin) in values.items()}
    shown = {field: value for field, value in {"service": name, **row}.items() if value not in ("", None, {})}
    lines = [f"{field}: {value}" + (f" ({origins[field]})" if field in origins else "") for field, value in shown.items()]
    report(as_json, {"service": name, **row, "origins": origins}, *lines)
    return 0


@app.command()
def add(
    name: Service,
    spider: Annotated[str, typer.Option(metavar="NAME", help="The spider; by default the service's name.")] = "",
    project: Annotated[str, typer.Option(metavar="MODULE", help="Module of the project's Scrapy settings.")] = "",
    size: Annotated[int, typer.Option(metavar="N", help="Number of crawlers.")] = 1,
    arguments: SpiderArguments = None,
    settings: ScrapySettings = None,
    max_waiting: Annotated[
        int, typer.Option(metavar="N", help="Start tasks that may wait; seeders are refused then. 0: any number.")
    ] = MAX_WAITING,
    min_items_per_minute: Annotated[float, typer.Option(metavar="N", help="Fewer items are an alert. 0: never.")] = 0.0,
    start_key: Annotated[str, typer.Option(metavar="KEY", help="Redis key of the start tasks.")] = "",
    consumer: Annotated[str, typer.Option(metavar="TARGET", help="none, forum_writer, or a target of trawl items consume.")] = "",
    key: Annotated[str, typer.Option(metavar="FIELD", help="Field by which a row of its database is found and replaced.")] = "",
    as_json: AsJson = False,
) -> int:
    """Declare a service, or declare it differently, for all nodes. It replaces the declaration of a file or of TRAWL_FLEET.

    Running crawlers are not changed; `trawl roll SERVICE` replaces them. `trawl.toml` has more, as limits of a crawler.

    **Examples:**

        trawl services add books --project shop.settings --size 2
        trawl services add news-de --spider news --project shop.settings -a language=de
    """
    given = {
        "spider": spider,
        "project": project,
        "size": size,
        "arguments": pairs("-a", arguments),
        "settings": pairs("-s", settings),
        "max_waiting": max_waiting,
        "min_items_per_minute": min_items_per_minute,
        "start_key": start_key,
        "consumer": consumer,
        "key": key,
    }
    record = check_service(name, given, name)
    with redis_client() as client:
        services = Services(client)
        before = services.get(name)
        services.declare(name, record)
    line = f"declared, {counted(record.size, 'crawler')}; trawl services check {name} checks that it can crawl"
    if before:
        line = f"declared differently; trawl roll {name} replaces crawlers that run"
    report(as_json, {"service": name, **_row(name, record, "run time")}, f"{name}: {line}")
    return 0


@app.command()
def remove(name: Service, as_json: AsJson = False) -> int:
    """Remove the declaration of `trawl services add`. A declaration in a file or in TRAWL_FLEET counts again."""
    with redis_client() as client:
        rows = _rows(client)
        if name not in rows:
            raise unknown_name("service", name, rows)
        if not Services(client).remove(name):
            raise ConfigError(
                f"{name} is declared in {rows[name]['declared']}: remove it there, or stop it: trawl scale {name}=0"
            )
        ConsumerPlaces(client).forget(name)
        left = _rows(client).get(name)
    where = f"as declared in {left['declared']}" if left else "removed; its crawlers end, its queue and items stay"
    report(as_json, {"service": name, "removed": left is None}, f"{name}: {where}")
    return 0


@app.command()
def check(
    names: OfServices = None,
    as_json: AsJson = False,
) -> int:
    """Load project and spider of each service on this machine, in a separate process, and show each fault with its fix.

    Exit code 1: a service cannot crawl, or not as a service should. A project's code runs, up to the making of its spider.
    """
    with redis_client() as client:
        rows = _rows(client)
        for name in names or ():
            if name not in rows:
                raise unknown_name("service", name, rows)
        found = {name: check_one(client, name) for name in names or rows}
    if as_json:
        print_json(found)
    for name, one in () if as_json else found.items():
        faults = [*filter(None, [one.wrong]), *one.faults]
        if not faults:
            echo(f"{name}: can crawl")
        for line in (*faults, *one.warnings):
            complain(f"{name}: {line}")
    return 1 if any(one.wrong or one.faults for one in found.values()) else 0


def _rows(client: redis.Redis) -> dict[str, dict[str, Any]]:
    """Return the declaration that counts of each service."""
    return {name: _row(name, one.record, one.origin) for name, one in sorted(declarations(client).items())}


def _row(name: str, record: ServiceRecord, declared: str) -> dict[str, Any]:
    hidden = {"arguments": masked_values(record.arguments), "settings": masked_values(record.settings)}
    shown = asdict(record) | hidden | {"spider": record.spider or name, "declared": declared}
    return shown | {"consumer": masked(record.consumer) if "://" in record.consumer else record.consumer}
