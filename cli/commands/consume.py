"""`trawl items consume`: a service's items into files, a database, or to an HTTP address."""

from __future__ import annotations

import socket
from typing import Annotated

import redis
import typer

from cli.access.names import check_spiders
from cli.access.redis import redis_client
from cli.access.values import item_keys
from cli.processes.interrupts import Interrupts
from cli.views.output import complain, counted, echo
from redis_components.admin.crawl_records import CrawlRecords
from redis_components.errors import ConfigError, unknown_name
from redis_components.items.groups import ItemGroup, group_names
from redis_components.items.stream import ItemStream
from redis_components.keys import CrawlKeys
from workers.consumers.consume import consume as move
from workers.consumers.targets import FORMS, MIB, SinkOptions, Target, parse_target
from workers.fleet.consumers import ConsumerHost, ConsumerPlaces, Declared, declared_consumers


def consume(
    service: Annotated[str, typer.Argument(metavar="SERVICE", help="The service whose items are taken.")] = "",
    to: Annotated[
        str, typer.Option("--to", metavar="TARGET", help=f"By default the consumer that the service declares: {FORMS}.")
    ] = "",
    key: Annotated[str, typer.Option(metavar="FIELD", help="Field by which a row of a database is found and replaced.")] = "",
    table: Annotated[str, typer.Option(metavar="NAME", help="Table of a database; by default the service's name.")] = "",
    max_mb: Annotated[float, typer.Option(metavar="MIB", help="Size from which a file is rotated; 0: none.", min=0)] = 100.0,
    max_age: Annotated[float, typer.Option(metavar="S", help="Age at which a file is rotated; 0: none.", min=0)] = 0.0,
    group: Annotated[str, typer.Option(metavar="NAME", help="Consumer group whose items are taken.")] = "",
    once: Annotated[bool, typer.Option("--once", help="End when no items wait.")] = False,
    every: Annotated[bool, typer.Option("--all", help="For each service that declares a consumer, as workers do.")] = False,
) -> int:
    """Take a service's items out of Redis until Ctrl-C or SIGTERM. Each arrives at least once; what is killed loses none.

    Workers do the same for each service that declares its consumer. Several may run for one service: one takes items, the
    others take over when it dies.

    **Examples:**

        trawl items consume books --to jsonl:data/books.jsonl
        trawl items consume books --group files --to jsonl:data/books.jsonl
        trawl items consume --all
        trawl items consume books --to postgresql+psycopg://user@host/shop --key url
    """
    interrupts, node = Interrupts(), f"trawl items consume on {socket.gethostname()}"
    if every == bool(service):
        raise ConfigError("name a service, or say --all for each that declares a consumer")
    if every:
        interrupts.listen()
        ConsumerHost(node, complain).run(lambda: bool(interrupts.asked), stays=True)
        return 0
    with redis_client() as client:
        stream = _stream_of(client, service, group)
        name = f"{service}/{stream.group}" if isinstance(stream, ItemGroup) else service
        declared = declared_consumers(client).get(name)
        target = parse_target(to) if to else _declared(declared, name)
        options = SinkOptions(
            table=table or service,
            key=key,
            max_bytes=int(max_mb * MIB),
            max_age_s=max_age,
            once=once,
            named=bool(to) or bool(declared and declared.in_file),
        )
        if declared and (not to or parse_target(declared.text) == target):
            ConsumerPlaces(client).claim(name, target, node, moved=bool(to))
        sink = target.open(options)
        interrupts.listen()
        done = move(stream, sink, stopped=lambda: interrupts.asked, once=once, log=lambda line: complain(f"{service}: {line}"))
    echo(f"{service}: {counted(done.items, 'item')} taken{f', {done.refused:,} refused' if done.refused else ''}")
    if done.refused:
        complain(f"trawl dead items {service} shows what was refused, and why")
    return 0


def _stream_of(client: redis.Redis, service: str, group: str) -> ItemStream | ItemGroup:
    """Its items, or those of one group. Raises ConfigError for what is not there, elsewhere, or another consumer's."""
    check_spiders(client, [service])
    record = CrawlRecords(client).of(service)
    if record and record.redis:
        raise ConfigError(f"the crawlers of {service} work with {record.redis}, not with the fleet's Redis: consume them there")
    if record and record.consumer:
        raise ConfigError(f"the items of {service} are taken by {record.consumer}: declare another consumer to take them here")
    keys = item_keys(client, service)
    group = _group_of(client, service, keys, group)
    return ItemGroup(client, keys, group) if group else ItemStream(client, keys)


def _group_of(client: redis.Redis, service: str, keys: CrawlKeys, named: str) -> str:
    """The group whose items are meant; "": they are a list. Raises ConfigError."""
    known = dict.fromkeys((*keys.item_groups, *group_names(client, keys)))
    if named and not known:
        raise ConfigError(f"{service} has no consumer groups: leave --group out, or declare them (groups in trawl.toml)")
    if named and named not in known:
        raise unknown_name("consumer group", named, known)
    if not named and len(known) > 1:
        raise ConfigError(f"{service} has the consumer groups {', '.join(known)}: say whose items are taken, with --group")
    return named or next(iter(known), "")


def _declared(declared: Declared | None, name: str) -> Target:

    if declared is None:
        service, _, group = name.partition("/")
        raise ConfigError(f"{service} declares no consumer{f' for {group}' if group else ''}: say --to {FORMS}")
    return declared.target
