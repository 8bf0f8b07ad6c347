"""`trawl items consume`: a consumer of a service's items."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Annotated

import redis
import typer

from cli.access import redis_client
from cli.names import check_spiders, item_keys
from cli.processes import Interrupts
from cli.views.options import command_group
from cli.views.output import complain, counted, echo
from fleet_operations.consumers.consume import MIB, SinkOptions, open_sink
from fleet_operations.consumers.consume import consume as move
from fleet_operations.consumers.declared import ConsumerPlaces, Declared, declared_consumers
from redis_components.embedded import data_dir
from redis_components.errors import ConfigError
from redis_components.items.stream import ItemStream
from redis_components.keys import CrawlRecords
from workers.targets import FORMS, Target, parse_target

app = command_group()


@app.command()
def consume(
    service: Annotated[str, typer.Argument(metavar="SERVICE", help="The service whose items are taken.")],
    to: Annotated[
        str, typer.Option("--to", metavar="TARGET", help=f"By default the consumer that the service declares: {FORMS}.")
    ] = "",
    key: Annotated[str, typer.Option(metavar="FIELD", help="Field by which a row of a database is found and replaced.")] = "",
    table: Annotated[str, typer.Option(metavar="NAME", help="Table of a database; by default the service's name.")] = "",
    max_mb: Annotated[float, typer.Option(metavar="MIB", help="Size from which a file is rotated; 0: none.", min=0)] = 100.0,
    max_age: Annotated[float, typer.Option(metavar="S", help="Age at which a file is rotated; 0: none.", min=0)] = 0.0,
    once: Annotated[bool, typer.Option("--once", help="End when no items wait.")] = False,
) -> int:
    """Take a service's items out of Redis until Ctrl-C or SIGTERM. Each arrives at least once; what is killed loses none.

    Workers do the same for each service that declares its consumer. Several may run for one service: one takes items, the
    others take over when it dies.

    **Examples:**

        trawl items consume books --to jsonl:data/books.jsonl
        trawl items consume books --to postgresql+psycopg://user@host/shop --key url
    """
    interrupts, node = Interrupts(), f"trawl items consume on {socket.gethostname()}"
    with redis_client() as client:
        stream = _stream_of(client, service)
        declared = declared_consumers(client).get(service)
        target = parse_target(to).below(Path.cwd()) if to else _declared(declared, service)
        options = SinkOptions(
            table=table or service,
            key=key or (declared.options().key if declared and not to else ""),
            max_bytes=int(max_mb * MIB),
            max_age_s=max_age,
            once=once,
        )
        if declared and (not to or parse_target(declared.text).below(data_dir()) == target):
            ConsumerPlaces(client).claim(service, target, node, moved=bool(to))
        sink = open_sink(target, options)
        interrupts.listen()
        done = move(stream, sink, stopped=lambda: interrupts.asked, once=once, log=lambda line: complain(f"{service}: {line}"))
    echo(f"{service}: {counted(done.items, 'item')} taken{f', {done.refused:,} refused' if done.refused else ''}")
    if done.refused:
        complain(f"trawl dead items {service} shows what was refused, and why")
    return 0


def _stream_of(client: redis.Redis, service: str) -> ItemStream:
    """Return the items of a service. Raises ConfigError for items that are another consumer's."""
    check_spiders(client, [service])
    record = CrawlRecords(client).of(service)
    if record and record.consumer:
        raise ConfigError(f"the items of {service} are taken by {record.consumer}: declare another consumer to take them here")
    return ItemStream(client, item_keys(client, service))


def _declared(declared: Declared | None, service: str) -> Target:
    if declared is None:
        raise ConfigError(f"{service} declares no consumer: name its target with --to {FORMS}")
    return declared.target
