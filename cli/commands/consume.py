"""`trawl consume`: a service's items into files, a database, or to an HTTP address."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.views.output import complain, counted, say

if TYPE_CHECKING:
    import redis

    from cli.processes.interrupts import Interrupts
    from redis_components.items.groups import ItemGroup
    from redis_components.items.stream import ItemStream
    from redis_components.keys import CrawlKeys
    from workers.consumers.sink import Sink
    from workers.consumers.targets import Target

MIB = 1024 * 1024
TICK_S = 0.1


def consume(
    service: Annotated[str, typer.Argument(metavar="SERVICE", help="The service whose items are taken.")] = "",
    to: Annotated[str, typer.Option("--to", metavar="TARGET", help="By default the consumer that the service declares.")] = "",
    key: Annotated[str, typer.Option(metavar="FIELD", help="Field by which a row of a database is found and replaced.")] = "",
    table: Annotated[str, typer.Option(metavar="NAME", help="Table of a database; by default the service's name.")] = "",
    max_mb: Annotated[float, typer.Option(metavar="MIB", help="Size from which a file is rotated; 0: none.", min=0)] = 100.0,
    max_age: Annotated[float, typer.Option(metavar="S", help="Age at which a file is rotated; 0: none.", min=0)] = 0.0,
    group: Annotated[str, typer.Option(metavar="NAME", help="Consumer group whose items are taken.")] = "",
    once: Annotated[bool, typer.Option("--once", help="End when no items wait.")] = False,
    every: Annotated[bool, typer.Option("--all", help="One for each service that declares one, restarted when it dies.")] = False,
) -> int:
    """Take a service's items out of Redis until Ctrl-C or SIGTERM. Each arrives at least once; what is killed loses none.

    TARGET is `jsonl:PATH`, `csv:PATH`, `parquet:PATH`, `s3://BUCKET/PREFIX`, `http://…`, or a database such as
    `sqlite:///books.sqlite`. Several may run for one service: one takes items, the others take over when it dies.

    **Examples:**

        trawl consume books --to jsonl:data/books.jsonl
        trawl consume books --group files --to jsonl:data/books.jsonl
        trawl consume --all
        trawl consume books --to postgresql+psycopg://user@host/shop --key url
    """
    from cli.access.redis import redis_client
    from cli.processes.interrupts import Interrupts
    from redis_components.errors import ConfigError
    from redis_components.server.signing import signing_is_on
    from workers.consumers.allowed_targets import check_place
    from workers.consumers.consume import consume as move
    from workers.consumers.targets import TargetKind

    interrupts = Interrupts()
    if every == bool(service):
        raise ConfigError("name a service, or say --all for each that declares a consumer")
    if every:
        interrupts.listen()
        return _supervise(interrupts)
    with redis_client() as client:
        stream = _stream_of(client, service, group)
        target = _target(client, service, getattr(stream, "group", ""), to)
        if key and target.kind is not TargetKind.DATABASE:
            raise ConfigError(f"--key is for databases: {target.kind} only appends")
        named = bool(to) or _is_in_file(client, service)
        if not named and not signing_is_on():
            check_place(target)
        sink: Sink
        if target.kind is TargetKind.S3:
            sink = _parts(stream, target, max_bytes=int(max_mb * MIB), max_age_s=max_age, once=once)
        else:
            sink = _sink(target, key=key, table=table or service, max_bytes=int(max_mb * MIB), max_age_s=max_age, named=named)
        interrupts.listen()
        done = move(stream, sink, stopped=lambda: interrupts.asked, once=once, log=lambda line: complain(f"{service}: {line}"))
    say(f"{service}: {counted(done.items, 'item')} taken{f', {done.refused:,} refused' if done.refused else ''}")
    if done.refused:
        complain(f"trawl dead items {service} shows what was refused, and why")
    return 0


def _supervise(interrupts: Interrupts) -> int:
    """A consumer process for each service that declares one, until somebody asks for the end."""
    from cli.access.redis import redis_client
    from cli.processes.consumers import Consumers
    from workers.fleet.sizes import declared_targets

    with redis_client() as client:
        consumers = Consumers(lambda: declared_targets(client), lambda name, line: complain(f"{name}: {line}"))
        try:
            while not interrupts.asked:
                consumers.tend()
                time.sleep(TICK_S)
        finally:
            consumers.stop(hurry=lambda: interrupts.impatient)
    return 0


def _stream_of(client: redis.Redis, service: str, group: str) -> ItemStream | ItemGroup:
    """Its items, or those of one group. Raises ConfigError for what is not there, elsewhere, or another consumer's."""
    from cli.access.names import check_spiders
    from cli.access.values import item_keys
    from redis_components.admin.crawl_records import CrawlRecords
    from redis_components.errors import ConfigError
    from redis_components.items.groups import ItemGroup
    from redis_components.items.stream import ItemStream

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
    from redis_components.errors import ConfigError, unknown_name
    from redis_components.items.group_states import group_names

    known = dict.fromkeys((*keys.item_groups, *group_names(client, keys)))
    if named and not known:
        raise ConfigError(f"{service} has no consumer groups: leave --group out, or declare them (groups in services.toml)")
    if named and named not in known:
        raise unknown_name("consumer group", named, known)
    if not named and len(known) > 1:
        raise ConfigError(f"{service} has the consumer groups {', '.join(known)}: say whose items are taken, with --group")
    return named or next(iter(known), "")


def _target(client: redis.Redis, service: str, group: str, to: str) -> Target:
    from redis_components.errors import ConfigError
    from workers.consumers.targets import FORMS, is_target, parse_target
    from workers.fleet.sizes import service_in

    if to:
        return parse_target(to)
    record = service_in(client, service)
    declared = (record.groups.get(group, "") if group else record.consumer) if record else ""
    if not is_target(declared):
        raise ConfigError(f"{service} declares no consumer{f' for {group}' if group else ''}: say --to {FORMS}")
    return parse_target(declared)


def _is_in_file(client: redis.Redis, service: str) -> bool:
    """Whether the declaration that counts is in this machine's file; what is in Redis may be anybody's who can write there."""
    from workers.fleet.service_file import services_in_file
    from workers.state.services import Services

    return service in services_in_file() and Services(client).of(service) is None


def _sink(target: Target, *, key: str, table: str, max_bytes: int, max_age_s: float, named: bool) -> Sink:
    from workers.consumers.database_rows import DatabaseRows
    from workers.consumers.files import CsvRows, JsonLines
    from workers.consumers.http_post import HttpPost
    from workers.consumers.parquet_files import ParquetFiles
    from workers.consumers.targets import TargetKind

    match target.kind:
        case TargetKind.JSONL:
            return JsonLines(Path(target.place), max_bytes=max_bytes, max_age_s=max_age_s)
        case TargetKind.CSV:
            return CsvRows(Path(target.place), max_bytes=max_bytes, max_age_s=max_age_s)
        case TargetKind.PARQUET:
            return ParquetFiles(Path(target.place), max_bytes=max_bytes, max_age_s=max_age_s)
        case TargetKind.DATABASE:
            return DatabaseRows(target.place, table, key)
        case _:
            return HttpPost(target.place, named=named)


def _parts(stream: ItemStream | ItemGroup, target: Target, *, max_bytes: int, max_age_s: float, once: bool) -> Sink:
    from workers.consumers.parts import LOCK_S, Parts
    from workers.consumers.s3_objects import S3Objects

    stream.lock_s = LOCK_S
    return Parts(stream, S3Objects(target.place), max_bytes=max_bytes, max_age_s=max_age_s, at_once=once)
